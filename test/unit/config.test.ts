/** The settings have defaults and spellings, and each value that stops the start gets a sentence. */
import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import express from 'express';
import fc from 'fast-check';
import { ConfigError, readConfig } from '../../src/config/config.ts';

const SEC = 1000;

test('the defaults are those of the contract', () => {
  const { config, warnings } = readConfig({ XDG_CACHE_HOME: '/cache' });
  const { tts, llm, observability } = config;
  assert.deepEqual([config.host, config.port], ['127.0.0.1', 8000]);
  assert.equal(config.modelDir, '/cache/voxgate/models');
  assert.equal(config.modelDownload, true);
  assert.equal(config.modelKeepAliveMs, 300 * SEC);
  assert.equal(config.modelDefaultSize, 'small');
  assert.equal(config.device, 'auto');
  assert.equal(config.cpu, 'auto');
  const upstream = { timeoutMs: 600 * SEC, apiKey: undefined, isConfigured: false };
  assert.deepEqual(tts, { url: 'http://127.0.0.1:8091', modelId: 'tts', ...upstream });
  assert.deepEqual(llm, { url: 'http://127.0.0.1:11434', ...upstream });
  assert.equal(config.maxUploadBytes, 2048 * 1024 * 1024);
  assert.equal(config.maxAudioSec, 6 * 3600);
  assert.deepEqual([config.apiKeys, config.corsOrigins], [[], []]);
  assert.deepEqual(
    { metrics: observability.metrics, accessLog: observability.accessLog, payload: observability.payload },
    { metrics: true, accessLog: true, payload: false },
  );
  assert.equal(observability.metricsWindowSec, 60 * 60);
  assert.equal(observability.payloadMaxAgeMs, 7 * 86_400_000);
  assert.equal(observability.payloadMaxBytes, 5 * 1024 ** 3);
  assert.equal(config.hubEndpoint, 'https://huggingface.co');
  assert(config.threads >= 1);
  assert.deepEqual(warnings, []);
  assert(Object.isFrozen(config));
});

test('an empty value counts as absent', () => assert.equal(readConfig({ SVC_PORT: '' }).config.port, 8000));

test('a value of spaces alone is refused, because a key that a template left out would open the gateway', () => {
  for (const name of ['SVC_API_KEY', 'SVC_MODEL_ALLOW', 'SVC_PORT', 'HF_TOKEN'])
    for (const value of [' ', '\t', ' \n '])
      assert.throws(
        () => readConfig({ [name]: value }),
        (error: unknown) =>
          error instanceof ConfigError && error.message.startsWith(`${name} holds only spaces`),
      );
});

test('a value in quotation marks is refused, because they would be part of a key or a folder', () => {
  for (const [name, value] of [
    ['SVC_API_KEY', '"s3cret"'],
    ['SVC_MODEL_DIR', "'/var/lib/models'"],
    ['SVC_HOST', '"0.0.0.0"'],
  ] as const)
    assert.throws(
      () => readConfig({ [name]: value }),
      new ConfigError(`${name} is in quotation marks: leave them out`),
    );
  assert.deepEqual(readConfig({ SVC_API_KEY: 'a"b"' }).config.apiKeys, ['a"b"']);
});

test('a name without its key is refused, because the name would be the key', () => {
  for (const value of ['alice=', 'alice=s3cret,bob=', 'living-room-satellite='])
    assert.throws(
      () => readConfig({ SVC_API_KEY: value }),
      new ConfigError('SVC_API_KEY cannot be "********": Expected a key after each name='),
    );
  const base64 = 'c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ=';
  assert.deepEqual(readConfig({ SVC_API_KEY: base64 }).config.apiKeys, [base64]);
});

test('an IPv6 address may stand in brackets, as in a URL', () => {
  for (const host of ['::1', '[::1]']) assert.equal(readConfig({ SVC_HOST: host }).config.host, '::1');
});

test('keep-alive -1 is forever, and 0 unloads at once', () => {
  assert.equal(
    readConfig({ SVC_MODEL_KEEP_ALIVE_SEC: '-1' }).config.modelKeepAliveMs,
    Number.POSITIVE_INFINITY,
  );
  assert.equal(readConfig({ SVC_MODEL_KEEP_ALIVE_SEC: '0' }).config.modelKeepAliveMs, 0);
});

test('aliases are name=id pairs', () => {
  const { config } = readConfig({ SVC_MODEL_ALIASES: 'mine=multilingual-base, other = cjk' });
  assert.deepEqual(config.modelAliases, { mine: 'multilingual-base', other: 'cjk' });
});

test('a switch takes each of its words in any case', () => {
  const metrics = (word: string) =>
    readConfig({ SVC_OBS_METRICS_ENABLED: word }).config.observability.metrics;
  const spellings = (words: string[]) =>
    words.flatMap((word) => [word, word.toUpperCase(), word[0]?.toUpperCase() + word.slice(1)]);
  for (const word of spellings(['1', 'on', 'true', 'yes', 'y'])) assert.equal(metrics(word), true, word);
  for (const word of spellings(['0', 'off', 'false', 'no', 'n'])) assert.equal(metrics(word), false, word);
});

test('Wyoming never passes by the keys unseen', () => {
  const wyoming = { SVC_WYOMING_PORT: '10300', SVC_API_KEY: 'secret' };
  const open = { ...wyoming, SVC_HOST: '0.0.0.0' };
  assert.throws(
    () => readConfig(open),
    (error: unknown) =>
      error instanceof ConfigError &&
      /^SVC_WYOMING_PORT with SVC_HOST=0\.0\.0\.0 .*SVC_API_KEY.*SVC_WYOMING_KEYLESS=on/.test(
        error.message,
      ) &&
      !error.message.includes('secret'),
  );
  assert.deepEqual(readConfig(wyoming).warnings, []);
  assert.equal(readConfig(wyoming).config.wyomingPort, 10_300);
  assert.match(String(readConfig({ ...open, SVC_WYOMING_KEYLESS: 'on' }).warnings), /may transcribe/);
  const { SVC_API_KEY: _, ...keyless } = open;
  assert.match(String(readConfig(keyless).warnings), /SVC_API_KEY is not set/);
  assert.equal(readConfig({}).config.wyomingPort, undefined);
});

test('no proxy is trusted unless the settings tell how many there are or where they are', () => {
  const trusted = (value: string) => readConfig({ SVC_TRUST_PROXY: value }).config.trustProxy;
  assert.equal(trusted(''), 0);
  assert.equal(trusted('0'), 0);
  assert.equal(trusted('2'), 2);
  assert.deepEqual(trusted('10.0.0.0/8, loopback,::1, fd00::/8'), [
    '10.0.0.0/8',
    'loopback',
    '::1',
    'fd00::/8',
  ]);
});

test('every subnet that is taken is one that Express takes', () => {
  const addresses = fc.oneof(
    fc.ipV4(),
    fc.ipV6(),
    fc.constant('fe80::1%eth0'),
    fc.constant('::ffff:10.0.0.1'),
  );
  const prefixes = fc.option(fc.integer({ min: 0, max: 130 }), { nil: null });
  fc.assert(
    fc.property(addresses, prefixes, (address, prefix) => {
      const subnet = prefix === null ? address : `${address}/${prefix}`;
      const read = () => readConfig({ SVC_TRUST_PROXY: subnet }).config.trustProxy;
      const given = (() => {
        try {
          return read();
        } catch {
          return null;
        }
      })();
      if (given !== null) assert.doesNotThrow(() => express().set('trust proxy', given), subnet);
    }),
    { numRuns: 2000 },
  );
});

for (const [name, value] of [
  ...[
    'true',
    '-1',
    '1.5',
    '99',
    '1, 2',
    '10.0.0.0/33',
    '10.0.0/8',
    '10.0.0.0/',
    'fe80::/129',
    '0.0.0.0/0',
    '::/0',
    'fe80::1%eth0',
    'proxy',
    '::1/x',
  ].map((value) => ['SVC_TRUST_PROXY', value] as const),
  ['SVC_PORT', '70000'],
  ['SVC_PORT', 'http'],
  ['SVC_MODEL_DOWNLOAD', 'maybe'],
  ['SVC_MODEL_DEFAULT_SIZE', 'huge'],
  ['SVC_DEVICE', 'tpu'],
  ['SVC_CPU', 'sse9'],
  ['SVC_MODEL_ALIASES', 'mine'],
  ['SVC_WYOMING_PORT', '65536'],
  ['SVC_LOG_LEVEL', 'loud'],
  ['SVC_ALLOWED_HOSTS', 'https://speech.example'],
  ...[
    'app.example',
    'app.example:8080',
    'https://d.example/ui',
    'https://d.example/?ui',
    'https://*.d.example',
    'https://',
    'mailto:hub',
    '*, d.example',
    'null',
  ].map((value) => ['SVC_CORS_ORIGINS', value] as const),
  ['SVC_OBS_METRICS_ENABLED', 'Truely'],
  ['HF_ENDPOINT', 'somewhere'],
  ['HF_ENDPOINT', 'mailto:hub'],
] as const) {
  test(`${name}=${value} stops the start with a sentence naming it`, () => {
    assert.throws(
      () => readConfig({ [name]: value }),
      (error: unknown) =>
        error instanceof ConfigError && error.message.includes(name) && error.message.includes(value),
    );
  });
}

test('the sites that may use the API are spelled as browsers spell them', () => {
  const sites = 'https://a.example/, https://b.example:443, HTTPS://C.example, http://d.example:8080';
  const apps = 'capacitor://localhost, chrome-extension://abc, *';
  assert.deepEqual(readConfig({ SVC_CORS_ORIGINS: `${sites}, ${apps}` }).config.corsOrigins, [
    ...['https://a.example', 'https://b.example', 'https://c.example', 'http://d.example:8080'],
    ...['capacitor://localhost', 'chrome-extension://abc', '*'],
  ]);
});

for (const [name, value, expected] of [
  ['SVC_TRUST_PROXY', 'foo', 'a number of proxies up to 32, or subnets such as 10.0.0.0/8'],
  ['SVC_TRUST_PROXY', '10.0.0.0/99', 'a number of proxies up to 32, or subnets such as 10.0.0.0/8'],
  ['SVC_TRUST_PROXY', '99', 'a number of proxies up to 32, or subnets such as 10.0.0.0/8'],
  ['SVC_TRUST_PROXY', '0.0.0.0/0', 'a number of proxies up to 32, or subnets such as 10.0.0.0/8'],
  ['SVC_PORT', '99999', 'a whole number from 0 to 65535'],
  ['SVC_PORT', '1.5', 'a whole number from 0 to 65535'],
  ['SVC_LIVE_WAIT_SEC', 'long', 'a number from 0 to 600'],
  ['SVC_CORS_ORIGINS', 'app.example', 'origins such as https://example.org, or *'],
  ['SVC_LOG_LEVEL', 'loud', 'error, warn, info, debug'],
  ['SVC_OBS_METRICS_ENABLED', 'maybe', '0, 1, on, off'],
] as const)
  test(`${name}=${value} is refused with what is expected`, () => {
    assert.throws(
      () => readConfig({ [name]: value }),
      ({ message }: Error) => message.startsWith(`${name} cannot be "${value}": Expected ${expected}`),
    );
  });

test('all settings that are wrong are named at once', () => {
  assert.throws(
    () =>
      readConfig({ SVC_MAX_UPLOADS: '1.5', SVC_PORT: 'http', SVC_API_KEY: 'right,ключ', SVC_CPU: 'auto' }),
    new ConfigError(
      [
        'SVC_PORT cannot be "http": Expected a whole number from 0 to 65535',
        'SVC_API_KEY cannot be "********": Expected keys of ASCII characters',
        'SVC_MAX_UPLOADS cannot be "1.5": Expected a whole number from 1 to 4096',
      ].join('; '),
    ),
  );
});

test('a key that no header can carry is refused, and no message repeats it', () => {
  assert.throws(
    () => readConfig({ SVC_API_KEY: 'right,ключ' }),
    (error: unknown) =>
      error instanceof ConfigError &&
      error.message === 'SVC_API_KEY cannot be "********": Expected keys of ASCII characters',
  );
});

test('a list without an item is refused, because it would open what it restricts to everyone', () => {
  for (const name of ['SVC_API_KEY', 'SVC_MODEL_ALLOW', 'SVC_ALLOWED_HOSTS'])
    for (const value of [',', ' , ,'])
      assert.throws(() => readConfig({ [name]: value }), ConfigError, `${name}=${value}`);
  assert.deepEqual(readConfig({ SVC_API_KEY: '' }).config.apiKeys, []);
});

test('a query or a fragment in the URL of an upstream is refused', () => {
  for (const value of ['http://127.0.0.1:1?x=1', 'http://127.0.0.1:1/v1?', 'http://127.0.0.1:1/#there'])
    assert.throws(() => readConfig({ SVC_LLM_BACKEND_URL: value }), /without a query or a fragment/, value);
});

test('a login in the URL of an upstream is refused, and no message repeats it', () => {
  for (const [value, reason] of [
    ['http://user:hush@127.0.0.1:1', /without a login/],
    ['https://hush@127.0.0.1', /without a login/],
    ['http:user:hush@127.0.0.1', /without a login|http or https/],
    ['htp://user:hush@127.0.0.1', /Expected an http or https URL/],
    ['htp://user:/hush@hush@127.0.0.1', /Expected an http or https URL/],
    ['user:hush@127.0.0.1', /Expected an http or https URL/],
    ['http//user:hush@127.0.0.1', /Expected an http or https URL/],
    ['//hush@127.0.0.1', /Expected an http or https URL/],
  ] as const)
    for (const name of ['SVC_TTS_UPSTREAM_URL', 'SVC_LLM_BACKEND_URL'])
      assert.throws(
        () => readConfig({ [name]: value }),
        (error: unknown) =>
          error instanceof ConfigError &&
          error.message.startsWith(`${name} cannot be`) &&
          reason.test(error.message) &&
          !error.message.includes('hush'),
        `${name}=${value}`,
      );
  assert.equal(readConfig({ HF_ENDPOINT: 'http://user:pw@hub' }).config.hubEndpoint, 'http://user:pw@hub');
});

test('one port for both protocols is refused, and both settings are named', () => {
  assert.throws(
    () => readConfig({ SVC_WYOMING_PORT: '8000' }),
    new ConfigError('SVC_PORT and SVC_WYOMING_PORT cannot both be 8000: set one of them to another port'),
  );
  assert.equal(readConfig({ SVC_PORT: '0', SVC_WYOMING_PORT: '0' }).config.wyomingPort, 0);
});

test('a gateway that others reach without a key says so at the start', () => {
  const warnings = (env: NodeJS.ProcessEnv) => readConfig(env).warnings;
  for (const SVC_HOST of ['0.0.0.0', '::', '192.168.1.5', 'speech.example']) {
    assert.match(warnings({ SVC_HOST })[0] ?? '', new RegExp(`SVC_HOST=${SVC_HOST} .*SVC_API_KEY`));
    assert.deepEqual(warnings({ SVC_HOST, SVC_API_KEY: 'k1' }), []);
  }
  for (const SVC_HOST of ['127.0.0.1', '127.1.2.3', 'localhost', '::1', ''])
    assert.deepEqual(warnings({ SVC_HOST }), []);
});

test('an unknown setting is reported with the nearest known one', () => {
  const { warnings } = readConfig({ SVC_MODEL_KEEPALIVE_SEC: '5' });
  assert.match(warnings[0] ?? '', /SVC_MODEL_KEEPALIVE_SEC.*SVC_MODEL_KEEP_ALIVE_SEC/);
});

test('a path may begin with the home folder, and what else a shell would replace is refused', () => {
  const names = ['SVC_MODEL_DIR', 'SVC_TMP_DIR', 'SVC_OBS_LOG_DIR', 'SVC_OBS_PAYLOAD_DIR', 'SVC_CRASH_DIR'];
  const foldersAt = (path: string) => {
    const { config } = readConfig(Object.fromEntries(names.map((name) => [name, path])));
    const { logDir, payloadDir } = config.observability;
    return [...new Set([config.modelDir, config.tmpDir, logDir, payloadDir, config.crashDir])];
  };
  assert.deepEqual(foldersAt('~/some/models'), [join(os.homedir(), 'some/models')]);
  assert.deepEqual(foldersAt('~'), [os.homedir()]);
  assert.deepEqual(foldersAt('./~'), [resolve('~')]);
  for (const name of names)
    for (const path of ['~somebody/models', '$HOME/models'])
      assert.throws(
        () => readConfig({ [name]: path }),
        (error: unknown) =>
          error instanceof ConfigError &&
          error.message.startsWith(`${name} cannot be "${path}": Expected a path`),
      );
});

test('a user without a home folder names the folder of models, and that is enough', (t) => {
  t.mock.method(os, 'homedir', () => {
    throw new Error('uv_os_homedir returned ENOENT (no such file or directory)');
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assert.throws(
    () => readConfig({}),
    new ConfigError('SVC_MODEL_DIR must be set, because this user has no home folder'),
  );
  assert.equal(readConfig({ SVC_MODEL_DIR: '/models' }).config.modelDir, '/models');
  assert.throws(() => readConfig({ SVC_MODEL_DIR: '~/models' }), /^ConfigError: SVC_MODEL_DIR cannot be/);
  assert.equal(readConfig({ XDG_CACHE_HOME: '/cache' }).config.modelDir, '/cache/voxgate/models');
});

test('a setting of a program that is undefined is absent', () => {
  const own = { SVC_API_KEY: undefined, SVC_PORT: '8001' } as never;
  assert.deepEqual(readConfig({}, own).config.apiKeys, []);
  assert.deepEqual(readConfig({ SVC_API_KEY: 'k' }, own).config.apiKeys, ['k']);
});

test('every level of instructions that the engine knows may be set', () => {
  const x86 = ['sse2', 'avx', 'avx2', 'avx2_vnni', 'avx512', 'avx512_vnni', 'avx512_bf16', 'amx'];
  for (const level of ['auto', ...x86, 'neon', 'neon_dotprod', 'neon_i8mm'])
    assert.equal(readConfig({ SVC_CPU: level }).config.cpu, level);
});

test('every level of the log may be set', () => {
  for (const level of ['error', 'warn', 'info', 'debug'])
    assert.equal(readConfig({ SVC_LOG_LEVEL: level }).config.logLevel, level);
});

test('one wrong item in a list is refused, and an empty one is none', () => {
  for (const [name, value] of [
    ['SVC_TRUST_PROXY', '10.0.0.0/8, foo'],
    ['SVC_API_KEY', 'good, kéy'],
    ['SVC_API_KEY', 'keyé'],
    ['SVC_ALLOWED_HOSTS', 'good.example, http://bad'],
  ] as const)
    assert.throws(() => readConfig({ [name]: value }), ConfigError, `${name}=${value}`);
  const { config } = readConfig({ SVC_API_KEY: 'one,,two, ', SVC_MODEL_ALLOW: 'cjk,' });
  assert.deepEqual([config.apiKeys, config.modelAllow], [['one', 'two'], ['cjk']]);
});

test('a password without a user is a login too', () => {
  assert.throws(() => readConfig({ SVC_LLM_BACKEND_URL: 'http://:hush@127.0.0.1:1' }), /without a login/);
});
