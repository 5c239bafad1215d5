/** `voxgate config`: every setting with its value and its source, no secret, and an example that can be used. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig, settings } from '../../src/config/config.ts';
import { shownGroups } from '../../src/config/shown-settings.ts';
import { program } from '../program.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const NAMES = Object.keys(settings.shape);

/** The environment holds nothing of the settings but these. */
function run(args: string[], env: NodeJS.ProcessEnv = {}) {
  const bare = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SVC|HF)_/.test(name)));
  const command = [...program('src/main.ts'), 'config', ...args];
  return spawnSync(process.execPath, command, { cwd: ROOT, env: { ...bare, ...env }, encoding: 'utf8' });
}

test('config shows every setting, and where its value came from', () => {
  const { status, stdout, stderr } = run(['--json'], {
    SVC_PORT: '9000',
    SVC_MODEL_DIR: '/weights',
    SVC_TYPO: '1',
  });
  assert.equal(status, 0, stderr);
  const { settings: shown, warnings } = JSON.parse(stdout);
  assert.deepEqual(
    shown.map(({ name }: { name: string }) => name),
    NAMES,
  );
  const of = (name: string) => {
    const { value, source } = shown.find((entry: { name: string }) => entry.name === name);
    return [value, source];
  };
  assert.deepEqual(of('SVC_PORT'), ['9000', 'environment']);
  assert.deepEqual(of('SVC_MODEL_DIR'), ['/weights', 'environment']);
  assert.deepEqual(of('SVC_HOST'), ['127.0.0.1', 'default']);
  assert.deepEqual(of('SVC_MODEL_DOWNLOAD'), ['on', 'default']);
  assert.deepEqual(of('SVC_THREADS'), [String(readConfig({}).config.threads), 'derived']);
  assert.deepEqual(of('SVC_WYOMING_PORT'), ['', 'unset']);
  assert.match(String(warnings), /SVC_TYPO/);
});

test('config is a table for people, with warnings on stderr', () => {
  const { status, stdout, stderr } = run([], { SVC_PORT: '9000', SVC_TYPO: '1' });
  assert.equal(status, 0, stderr);
  assert.match(stdout, /^SVC_PORT +environment +9000$/m);
  assert.equal(stdout.trim().split('\n').length, NAMES.length);
  assert.match(stderr, /^warning: SVC_TYPO/);
});

test('config shows no secret', () => {
  const secrets = {
    SVC_API_KEY: 'hush-1,hush-2',
    HF_TOKEN: 'hush-3',
    HF_ENDPOINT: 'http://user:hush-4@127.0.0.1:1/v1',
  };
  for (const args of [[], ['--json']]) {
    const { status, stdout, stderr } = run(args, secrets);
    assert.equal(status, 0, stderr);
    assert.doesNotMatch(stdout + stderr, /hush/);
    assert.match(stdout, /@127\.0\.0\.1:1\/v1/);
  }
});

test('a secret of a file, and a setting of a program, say where they came from', (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-config-'));
  t.after(() => rmSync(dir, { recursive: true }));
  writeFileSync(join(dir, 'key'), 'hush');
  const around = { HOME: dir, SVC_API_KEY_FILE: join(dir, 'key'), SVC_PORT: '9000', SVC_THREADS: '2' };
  const { config } = readConfig(around, { SVC_PORT: 9001, SVC_LLM_API_KEY: 'hush' });
  const shown = shownGroups(config).flatMap((group) => group.settings);
  assert.doesNotMatch(JSON.stringify([shown, config.given]), /hush/);
  const of = (name: string) => shown.find((setting) => setting.name === name);
  assert.deepEqual(
    ['SVC_API_KEY', 'SVC_LLM_API_KEY', 'SVC_PORT', 'SVC_THREADS', 'SVC_MODEL_DIR'].map(
      (name) => of(name)?.source,
    ),
    ['file', 'program', 'program', 'environment', 'derived'],
  );
  assert.equal(of('SVC_PORT')?.value, '9001');
  assert.equal(of('SVC_API_KEY')?.secret, true);
});

test('a wrong setting is named, with exit status 2', () => {
  const { status, stderr } = run([], { SVC_PORT: 'http' });
  assert.equal(status, 2);
  assert.match(stderr, /^voxgate: SVC_PORT cannot be "http"/);
});

test('a name that is no model is a wrong setting, as at the start of the gateway', () => {
  const { status, stdout, stderr } = run([], { SVC_MODEL_PRELOAD: 'multilingual-huge' });
  assert.deepEqual([status, stdout], [2, '']);
  assert.match(stderr, /^voxgate: SVC_MODEL_PRELOAD cannot hold "multilingual-huge"/);
});

test('the example holds every setting once, and its defaults mean what absence means', () => {
  const { status, stdout } = run(['--example'], { SVC_PORT: 'http' });
  assert.equal(status, 0, 'it needs no valid settings');
  const pairs = [...stdout.matchAll(/^#(\w+)=(.*)$/gm)].map(
    ([, name = '', value = '']) => [name, value] as const,
  );
  assert.deepEqual(
    pairs.map(([name]) => name),
    NAMES,
  );
  const { environment: _, given: _set, ...set } = readConfig(Object.fromEntries(pairs)).config;
  const { environment: __, given: _unset, ...unset } = readConfig({}).config;
  assert.deepEqual(set, unset);
  for (const kind of Object.values(settings.shape))
    assert(
      ['\n', ' ('].some((next) => stdout.includes(`\n# ${kind.meta()?.description}${next}`)),
      String(kind.meta()?.description),
    );
  for (const line of [
    '# port to listen on; 0 picks a free one (0 to 65535, whole)',
    '# whether missing weights may be downloaded (on, off)',
    '# how detailed the log is (error, warn, info, debug)',
    '# where weights are kept',
  ])
    assert(stdout.split('\n').includes(line), line);
});
