/** `voxgate doctor`: what is wrong is found and says what to do, and a check that hangs does not hang the command. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server as HttpServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { diagnose } from '../../src/cli/doctor.ts';
import { checksOf } from '../../src/cli/doctor-checks.ts';
import { readConfig } from '../../src/config/config.ts';
import { missingEngine } from '../../src/engine/missing-engine.ts';
import { DIARIZATION, VOICE_ACTIVITY } from '../../src/models/catalogue.ts';
import { Records } from '../../src/models/records.ts';
import { createModelStore } from '../../src/models/store.ts';
import { program } from '../program.ts';
import { onSmallDisk } from '../unit/observability-fixtures.ts';
import { startGateway } from './harness.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const LIMIT_MS = 60_000;

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-doctor-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

async function listening(t: TestContext, server: Server | HttpServer): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** What the doctor finds under these settings, by the name of the check. Port 1 of loopback has no server. */
async function findings(env: NodeJS.ProcessEnv, verify = false) {
  const nothing = 'http://127.0.0.1:1';
  const { config, warnings } = readConfig({
    SVC_TTS_UPSTREAM_URL: nothing,
    SVC_LLM_BACKEND_URL: nothing,
    SVC_PORT: '0',
    ...env,
  });
  const log = { info() {}, warn() {} };
  const store = createModelStore({
    ...{
      dir: config.modelDir,
      download: config.modelDownload,
      precision: 'q8_0',
      sources: [],
      quantize: null,
      log,
    },
  });
  const input = { config, warnings, engine: missingEngine(), device: { device: 'cpu', gpu: false }, store };
  const { found } = await diagnose(checksOf(input, verify), LIMIT_MS);
  return Object.fromEntries(found.map(({ name, state, says }) => [name, `${state}: ${says}`]));
}

test('what is missing is named with what to do', async (t) => {
  const dir = folder(t);
  const file = join(dir, 'file');
  writeFileSync(file, '');
  const found = await findings({
    ...{ PATH: dir, SVC_MODEL_DIR: join(dir, 'models'), SVC_MODEL_DOWNLOAD: 'off' },
    ...{
      SVC_TMP_DIR: dir,
      SVC_OBS_LOG_DIR: file,
      SVC_MAX_CONNECTIONS: '1000000',
      SVC_MODEL_MEMORY_MB: '16777216',
    },
  });
  assert.match(found.ffmpeg ?? '', /^warning: .*there is no ffmpeg in PATH: install ffmpeg$/);
  assert.match(found.engine ?? '', /^problem: .*run npm run build$/);
  assert.match(found.models ?? '', /^problem: no speech model .*voxgate models pull multilingual-small$/);
  assert.match(found['speech upstream'] ?? '', /^warning: http:\/\/127\.0\.0\.1:1 .*SVC_TTS_UPSTREAM_URL/);
  assert.match(found['chat upstream'] ?? '', /^warning: .*SVC_LLM_BACKEND_URL/);
  assert.match(found['folder of access log'] ?? '', /^problem: .*is not a folder: set SVC_OBS_LOG_DIR/);
  assert.match(found['folder of models'] ?? '', /^ok: .*models will be made$/);
  assert.match(found.memory ?? '', /^warning: .*lower SVC_MODEL_MEMORY_MB$/);
  if (process.platform === 'linux')
    assert.match(found['open files'] ?? '', /^(warning: .*ulimit -n|ok: up to (Infinity|\d{7,}))/);
});

test('a folder on a read-only file system needs no other owner', async (t) => {
  const dir = folder(t);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'none', dir]).status !== 0)
    return t.skip('this user may mount no file systems');
  try {
    const found = await findings({ SVC_TMP_DIR: dir });
    assert.equal(
      found['folder of uploads'],
      `problem: ${dir} is on a read-only file system: mount it to be written, or set SVC_TMP_DIR to another folder`,
    );
  } finally {
    execFileSync('umount', [dir]);
  }
});

test('a proxy that lets no model be downloaded is named, and one that is not asked is not', async (t) => {
  const proxy = createTcpServer((socket) => socket.destroy());
  const port = await listening(t, proxy);
  const { HTTPS_PROXY: before } = process.env;
  t.after(() => {
    if (before === undefined) delete process.env.HTTPS_PROXY;
    else process.env.HTTPS_PROXY = before;
  });
  const check = async (url: string, env: NodeJS.ProcessEnv = {}) => {
    process.env.HTTPS_PROXY = url;
    return (await findings({ HTTPS_PROXY: url, ...env })).proxy;
  };
  const working = `http://user:secret@127.0.0.1:${port}`;
  assert.equal(await check(working), `ok: models are downloaded through 127.0.0.1:${port}`);
  assert.match(
    (await check('http://127.0.0.1:1')) ?? '',
    /^warning: .* 127\.0\.0\.1:1 does not answer: correct/,
  );
  assert.match((await check('socks5://127.0.0.1:1')) ?? '', /^problem: .*the proxy for it is no http/);
  const unused = await check('http://127.0.0.1:1', { SVC_MODEL_DOWNLOAD: 'off' });
  assert.equal(unused, 'ok: models are downloaded without it');
  assert.equal((await findings({})).proxy, undefined);
});

test('--verify finds weights whose content has changed, also where their size and time have not', async (t) => {
  const dir = folder(t);
  const [file] = DIARIZATION.derived.map((derived) => derived.file);
  const path = join(dir, file ?? '');
  const content = Buffer.from('weights that were written here');
  writeFileSync(path, content);
  utimesSync(path, 1, 1);
  await new Records(dir).write(file ?? '', createHash('sha256').update(content).digest('hex'), 'import');
  const name = 'hashes';
  assert.equal((await findings({ SVC_MODEL_DIR: dir }))[name], undefined);
  assert.equal((await findings({ SVC_MODEL_DIR: dir }, true))[name], `ok: ${file}`);
  content[0] = 0;
  writeFileSync(path, content);
  utimesSync(path, 1, 1);
  assert.match(
    (await findings({ SVC_MODEL_DIR: dir }, true))[name] ?? '',
    /^problem: .*found sha256 .*: run voxgate models rm diarization, then voxgate models pull diarization$/,
  );
});

test('a file of weights that was cut is a problem with what to do, and no download is promised', async (t) => {
  const dir = folder(t);
  const file = VOICE_ACTIVITY.files.f16?.file ?? '';
  writeFileSync(join(dir, file), 'cut');
  const mend = new RegExp(
    `^problem: .*${file}: found 3 bytes, .*: run voxgate models rm ${VOICE_ACTIVITY.id}, then voxgate models pull ${VOICE_ACTIVITY.id}$`,
  );
  const found = await findings({ SVC_MODEL_DIR: dir }, true);
  assert.match(found.models ?? '', mend);
  assert.match(found.hashes ?? '', mend);
});

test('a port is free, a gateway’s, or another program’s', async (t) => {
  const dir = folder(t);
  const taken = await listening(
    t,
    createServer((_req, res) => res.end('no gateway')),
  );
  await using gateway = await startGateway();
  const port = async (number: number | string) =>
    (await findings({ SVC_MODEL_DIR: dir, SVC_PORT: String(number) })).port;
  assert.match((await port(taken)) ?? '', /^problem: .*in use by another program.*SVC_PORT/);
  assert.match((await port(new URL(gateway.base).port)) ?? '', /^ok: .*in use, and a gateway answers$/);
  assert.match((await port(0)) ?? '', /^ok: /);
  const wyoming = async (httpPort: string) =>
    (await findings({ SVC_MODEL_DIR: dir, SVC_PORT: httpPort, SVC_WYOMING_PORT: String(taken) }))[
      'Wyoming port'
    ];
  assert.match((await wyoming('0')) ?? '', /^problem: .*SVC_WYOMING_PORT/);
  assert.match((await wyoming(new URL(gateway.base).port)) ?? '', /^ok: .*in use, and a gateway answers$/);
});

test('a Unix socket is free, left by a dead server, used by a gateway or not there', async (t) => {
  const dir = folder(t);
  const path = join(dir, 'gateway.sock');
  const socket = async (at = path) =>
    (await findings({ SVC_MODEL_DIR: dir, SVC_HOST: `unix:${at}` }))['Unix socket'] ?? '';
  assert.equal(await socket(), `ok: ${path} is free`);
  await using gateway = await startGateway();
  const passedOn = createTcpServer((near) => {
    const far = connect(Number(new URL(gateway.base).port), '127.0.0.1');
    near.pipe(far).pipe(near);
  });
  t.after(() => passedOn.close());
  await once(passedOn.listen(path), 'listening');
  assert.equal(await socket(), `ok: ${path} is in use, and a gateway answers`);
  const other = createTcpServer((connection) => connection.end());
  t.after(() => other.close());
  await once(other.listen(join(dir, 'other.sock')), 'listening');
  assert.match(await socket(join(dir, 'other.sock')), /^problem: .* in use by another program/);
  writeFileSync(join(dir, 'file'), '');
  assert.match(await socket(join(dir, 'file')), /^problem: .* is no socket, and stays/);
  assert.match(await socket(join(dir, 'none', 'x.sock')), /^problem: .*none is not there/);
});

test('an upstream that answers is ok, and one that fails or falls silent is not', async (t) => {
  const dir = folder(t);
  const failing = await listening(
    t,
    createServer((_req, res) => res.writeHead(503).end()),
  );
  const silent = await listening(
    t,
    createTcpServer((socket) => t.after(() => socket.destroy())),
  );
  const answering = await listening(
    t,
    createServer((_req, res) => res.end()),
  );
  const at = (port: number) => `http://127.0.0.1:${port}`;
  const one = await findings({
    ...{ SVC_MODEL_DIR: dir, SVC_TTS_UPSTREAM_URL: at(failing), SVC_LLM_BACKEND_URL: at(silent) },
  });
  assert.match(one['speech upstream'] ?? '', /^warning: .*\/health with status 503/);
  assert.match(one['chat upstream'] ?? '', /^warning: .*does not answer/);
  const two = await findings({ SVC_MODEL_DIR: dir, SVC_TTS_UPSTREAM_URL: at(answering) });
  assert.equal(two['speech upstream'], `ok: ${at(answering)} answers`);
  const ollama = await listening(
    t,
    createServer((req, res) => res.writeHead(req.url === '/api/tags' ? 200 : 404).end('{"models":[]}')),
  );
  const chat = async (url: string) =>
    await findings({ SVC_MODEL_DIR: dir, SVC_LLM_BACKEND_URL: url, SVC_TTS_UPSTREAM_URL: at(ollama) });
  const three = await chat(at(ollama));
  assert.equal(three['chat upstream'], `ok: ${at(ollama)} answers`, 'as /v1/models lists it');
  assert.equal(three['speech upstream'], `ok: ${at(ollama)} answers`, 'a server without /health is up');
  assert.equal(
    (await chat(`${at(ollama)}/v1/`))['chat upstream'],
    `ok: ${at(ollama)} answers`,
    'a /v1 as in the base URL of OpenAI’s packages is left out',
  );
  assert.match(
    (await chat(at(answering)))['chat upstream'] ?? '',
    /^warning: .* answers \/v1\/models with something that is no list of models: set SVC_LLM_BACKEND_URL/,
  );
  const none = await findings({ SVC_MODEL_DIR: dir, SVC_TTS_UPSTREAM_URL: '', SVC_LLM_BACKEND_URL: '' });
  for (const name of ['speech upstream', 'chat upstream'])
    assert.match(
      none[name] ?? '',
      /^ok: (none: nothing answers at|.* answers$)/,
      'an upstream that no setting names is no warning',
    );
});

/** A certificate that nothing vouches for, and its key. */
function selfSigned(dir: string) {
  const [key, cert] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const files = ['-keyout', key, '-out', cert];
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  execFileSync('openssl', ['req', '-x509', ...kind, ...files, ...names], { stdio: 'pipe' });
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

test('the cause why an upstream cannot serve is named, with what to do', async (t) => {
  const dir = folder(t);
  const serve = (answer: RequestListener) => listening(t, createServer(answer));
  const status = (code: number) => serve((_req, res) => res.writeHead(code).end());
  const page = await serve((_req, res) =>
    res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8' }).end('<html>Log in</html>'),
  );
  const secure = await listening(
    t,
    createSecureServer(selfSigned(dir), (_req, res) => res.end('{"data":[]}')),
  );
  const silent = await listening(
    t,
    createTcpServer((socket) => t.after(() => socket.destroy())),
  );
  const odd = await listening(
    t,
    createTcpServer((socket) => socket.end('220 mail.example ESMTP\r\n')),
  );
  const chat = async (url: string, env: NodeJS.ProcessEnv = {}) =>
    (await findings({ SVC_MODEL_DIR: dir, SVC_LLM_BACKEND_URL: url, ...env }))['chat upstream'] ?? '';
  const closing = createTcpServer();
  const closed = await listening(t, closing);
  closing.close();
  const at = (port: number, scheme = 'http') => `${scheme}://127.0.0.1:${port}`;
  const key = { SVC_LLM_API_KEY: 'wrong' };
  for (const [found, expected] of [
    [await chat(at(closed)), /refuses the connection: start it, or correct SVC_LLM_BACKEND_URL$/],
    [await chat('http://nowhere.invalid'), /a name that is not found \(DNS\): correct the host in SVC_LLM_/],
    [await chat(at(secure, 'https')), /not trusted \(DEPTH_ZERO_SELF_.*: .*NODE_EXTRA_CA_CERTS/],
    [await chat(at(page, 'https')), /does not speak TLS: .*correct the scheme/],
    [await chat(at(silent)), /does not answer in time: look whether it hangs/],
    [await chat(at(odd)), /answers something that is no HTTP: correct the port/],
    [await chat(at(await status(401))), /status 401, so it wants a key: set SVC_LLM_API_KEY/],
    [await chat(at(await status(403)), key), /so it refuses the key that it is sent: set SVC_LLM_API_KEY/],
    [await chat(at(await status(500))), /with status 500: its log says why/],
    [
      await chat(at(page)),
      /with a web page that is no list of models: set SVC_LLM_BACKEND_URL to the address/,
    ],
  ] as const) {
    assert.match(found, /^warning: https?:\/\//);
    assert.match(found, expected);
  }
  for (const host of ['127.0.0.1', 'localhost'])
    assert.match(
      await chat(`http://${host}:${page}`, { SVC_PORT: String(page) }),
      /^problem: .* is this gateway itself: set SVC_LLM_BACKEND_URL to another address/,
    );
});

test('a speech server without /health is up unless its list of models says otherwise', async (t) => {
  const speech = async (list: number, health = 404) => {
    const server = createServer((req, res) => res.writeHead(req.url === '/health' ? health : list).end());
    const url = `http://127.0.0.1:${await listening(t, server)}`;
    const found = await findings({ SVC_MODEL_DIR: folder(t), SVC_TTS_UPSTREAM_URL: url });
    return (found['speech upstream'] ?? '').replace(url, 'it');
  };
  assert.equal(await speech(404), 'ok: it answers');
  assert.equal(await speech(200, 405), 'ok: it answers', 'also where the list is none');
  assert.match(await speech(401), /^warning: it answers \/v1\/models with status 401, so it wants a key/);
  assert.match(await speech(503), /^warning: it answers \/v1\/models with status 503/);
  assert.match(await speech(200, 500), /^warning: it answers \/health with status 500/);
});

test('settings that leave the gateway open or were misspelled are named', async (t) => {
  const settings = async (env: NodeJS.ProcessEnv) =>
    (await findings({ SVC_MODEL_DIR: folder(t), ...env })).settings ?? '';
  assert.equal(await settings({ SVC_API_KEY: 'short' }), 'ok: none is odd', 'on the loopback');
  assert.match(
    await settings({ SVC_HOST: '0.0.0.0' }),
    /^warning: SVC_HOST=0\.0\.0\.0 lets other machines reach .*, and SVC_API_KEY is not set: everyone/,
  );
  const keys = { SVC_HOST: '0.0.0.0', SVC_API_KEY: `alice=${'a'.repeat(16)}`, SVC_ADMIN_KEY: 'root=secret' };
  assert.match(
    await settings(keys),
    /^warning: a key of SVC_ADMIN_KEY can be guessed: take a random one, as openssl rand -hex 24 prints$/,
  );
  assert.match(await settings({ SVC_MAX_UPLOADS_MB: '5' }), /^warning: .*SVC_MAX_UPLOADS_MB.*SVC_MAX_UPLOAD/);
});

test('an address that this machine does not have is a problem', async (t) => {
  const { port } = await findings({ SVC_MODEL_DIR: folder(t), SVC_HOST: '192.0.2.1', SVC_PORT: '8000' });
  assert.match(port ?? '', /^problem: 192\.0\.2\.1 is no address of this machine: set SVC_HOST/);
});

test('a disk that is too small for the model that would be downloaded is a problem', (t) =>
  onSmallDisk(t, 128 * 1024, async (dir) => {
    const { models } = await findings({ SVC_MODEL_DIR: join(dir, 'models') });
    assert.match(
      models ?? '',
      /^problem: Not enough space in .*: \d+ MB are needed and \d+ MB are free\. Free/,
    );
  }));

test('a model that has only 16 bits yet is said to become 8 bits', async (t) => {
  const dir = folder(t);
  const sized = (file: string, bytes: number) => {
    writeFileSync(join(dir, file), '');
    truncateSync(join(dir, file), bytes);
  };
  sized('ggml-silero-v6.2.0.bin', 885098);
  sized('ggml-base.bin', 147951465);
  const { models } = await findings({ SVC_MODEL_DIR: dir });
  assert.match(
    models ?? '',
    /^ok: multilingual-base \(148 MB, of which .*voxgate models pull multilingual-base now\)$/,
  );
  sized('ggml-base-q8_0.bin', 81768585);
  assert.equal((await findings({ SVC_MODEL_DIR: dir })).models, 'ok: multilingual-base (230 MB)');
});

test('uploads that would take the memory of the models are a warning', async (t) => {
  const space = async (dir: string, env = {}) =>
    (await findings({ SVC_MODEL_DIR: folder(t), SVC_TMP_DIR: dir, ...env }))['space for uploads'] ?? '';
  await onSmallDisk(t, 128 * 1024, async (dir) => {
    const all = { SVC_MODEL_MEMORY_MB: '16777216', SVC_MAX_UPLOAD_MB: '1' };
    assert.match(
      await space(dir, all),
      /^warning: .* is in memory, where uploads may take 134 MB besides the models: set SVC_TMP_DIR/,
    );
    assert.match(await space(dir, { SVC_MAX_UPLOAD_MB: '1' }), /^ok: /);
  });
});

test('the space for uploads is what is left besides the space that stays free', (t) =>
  onSmallDisk(t, 128 * 1024, async (dir) => {
    const space = async (megabytes: string) =>
      (await findings({ SVC_MODEL_DIR: dir, SVC_TMP_DIR: dir, SVC_MAX_UPLOAD_MB: megabytes }))[
        'space for uploads'
      ];
    assert.match((await space('60')) ?? '', /^ok: \d+ MB free in/);
    assert.match(
      (await space('100')) ?? '',
      /^warning: .*SVC_MAX_UPLOAD_MB and the 67 MB that stay free: free some/,
    );
  }));

test('a check that hangs or throws is a problem, and the others are answered', async () => {
  const { found, late } = await diagnose(
    [
      { name: 'hangs', run: () => new Promise(() => undefined) },
      { name: 'throws', run: async () => Promise.reject(new Error('no such thing')) },
      { name: 'works', run: async () => ({ state: 'ok', says: 'fine' }) },
    ],
    200,
  );
  assert.equal(late, true);
  assert.deepEqual(
    found.map(({ state, says }) => `${state}: ${says}`),
    ['problem: no answer within 0.2 s: what it looks at hangs', 'problem: no such thing', 'ok: fine'],
  );
});

async function run(args: string[], env: NodeJS.ProcessEnv) {
  const command = [...program('src/main.ts'), 'doctor', ...args];
  const child = spawn(process.execPath, command, {
    cwd: ROOT,
    env: { ...process.env, SVC_PORT: '0', ...env },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  const [status] = await once(child, 'close');
  return { status, stdout, stderr };
}

test('the exit status is 1 when there is a problem and 0 when there are only warnings', async (t) => {
  const env = { SVC_MODEL_DIR: folder(t), SVC_OBS_LOG_DIR: folder(t) };
  const fine = await run(['--json'], env);
  const { checks } = JSON.parse(fine.stdout);
  assert.equal(fine.status, 0, fine.stdout + fine.stderr);
  assert(
    checks.some(({ name, state }: { name: string; state: string }) => name === 'engine' && state === 'ok'),
  );
  assert.doesNotMatch(JSON.stringify(checks), /fake/); // the family that only tests load
  const ill = await run([], { ...env, SVC_MODEL_DOWNLOAD: 'off' });
  assert.equal(ill.status, 1, ill.stdout + ill.stderr);
  assert.match(ill.stdout, /^problem {2}models +no speech model/m);
  assert.match(ill.stdout, /^ok {7}.*settings, /m, 'what is right has one line');
  assert.match((await run(['--verbose'], env)).stdout, /^ok {7}settings +none is odd$/m);
});
