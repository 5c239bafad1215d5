/**
 * The system gives the gateway few descriptors, no more processes, or little memory and processor time: the gateway
 * says so where it cannot serve, and serves again afterwards.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { cgroupLimits } from '../../src/machine.ts';
import { json, toneWav, until } from '../http/harness.ts';
import { program } from '../program.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

interface Server {
  base: string;
  child: ChildProcess;
  log(): string;
}

/** Runs the real gateway, with its real engine and no weights, under a command that limits it. */
async function serve(t: TestContext, limiter: string[] = []): Promise<Server> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-limits-'));
  const node = [process.execPath, ...program('src/main.ts'), 'serve'];
  const [command = '', ...args] = [...limiter, ...node];
  const env = {
    ...{
      PATH: process.env.PATH,
      HOME: dir,
      SVC_PORT: '0',
      SVC_TMP_DIR: dir,
      SVC_MODEL_DIR: join(dir, 'models'),
    },
    ...{ SVC_OBS_LOG_DIR: join(dir, 'logs'), SVC_MODEL_DOWNLOAD: 'off' },
  };
  const child = spawn(command, args, { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  t.after(async () => {
    child.kill('SIGKILL');
    await until('it is gone', () => child.exitCode !== null || child.signalCode !== null);
    rmSync(dir, { recursive: true, force: true });
    await removeGroups();
  });
  await until('it listens', () => /listens on \S+/.test(log) || child.exitCode !== null, 60_000);
  const [, base = ''] = /listens on (\S+)/.exec(log) ?? [];
  assert.notEqual(base, '', log);
  return { base, child, log: () => log };
}

/** The gateway has no weights, so a transcription that gets as far as it can ends there. */
async function transcribe({ base }: Server): Promise<string> {
  const body = new FormData();
  body.append('model', 'multilingual-base');
  body.append('file', new Blob([Uint8Array.from(toneWav(1))]), 'a.wav');
  const response = await fetch(`${base}/v1/audio/transcriptions`, { method: 'POST', body });
  const { error } = await json(response);
  return `${response.status} ${error.code}`;
}

const SERVED = '503 model_not_installed';

test('with all descriptors in use the gateway lives, and serves when some are free again', async (t) => {
  const server = await serve(t, ['prlimit', '--nofile=512:512']);
  assert.equal(await transcribe(server), SERVED);
  const { port, hostname } = new URL(server.base);
  const sockets: Socket[] = [];
  for (let i = 0; i < 700; i++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    sockets.push(socket);
  }
  await until('they are dialed', () => sockets.every((socket) => !socket.connecting));
  assert.equal(server.child.exitCode, null);
  for (const socket of sockets) socket.destroy();
  await until('it serves again', async () => (await transcribe(server).catch(String)) === SERVED, 20_000);
  assert.equal((await fetch(`${server.base}/health`)).status, 200);
});

const groups: string[] = [];

/** A group can be removed only when its last process is gone. */
async function removeGroups(): Promise<void> {
  for (const dir of groups.splice(0))
    await until('the group is empty', () => spawnSync('rmdir', [dir], { stdio: 'ignore' }).status === 0);
}

/** A cgroup of version 1 with a limit, and the command that enters it. */
function group(controller: 'pids' | 'memory' | 'cpu', limits: Record<string, string>): string[] | null {
  const parent = ['/sys/fs/cgroup', controller].join('/');
  const dir = join(parent, `voxgate-test-${process.pid}-${controller}`);
  try {
    mkdirSync(dir);
    groups.push(dir);
    for (const [name, value] of Object.entries(limits)) writeFileSync(join(dir, name), value);
  } catch {
    return null;
  }
  return ['sh', '-c', `echo $$ > ${dir}/cgroup.procs && exec "$@"`, 'sh'];
}

const NO_GROUPS = 'this user may make no cgroups of version 1 here';

test('a quota of the container decides the threads, and the start says how many', async (t) => {
  const limiter = group('cpu', { 'cpu.cfs_period_us': '100000', 'cpu.cfs_quota_us': '100000' });
  if (limiter === null) return t.skip(NO_GROUPS);
  const server = await serve(t, limiter);
  assert.match(server.log(), /listens on \S+ .*\bthreads=1\b/);
});

test('where no thread can be made a request fails at most, and the gateway lives', async (t) => {
  const limiter = group('pids', { 'pids.max': '64' });
  if (limiter === null) return t.skip(NO_GROUPS);
  const server = await serve(t, limiter);
  const at = `/sys/fs/cgroup/pids/voxgate-test-${process.pid}-pids`;
  writeFileSync(join(at, 'pids.max'), '1'); // fewer than run now, so that no thread and no process is made any more
  const m4a = execFileSync('ffmpeg', [
    '-v',
    'error',
    '-f',
    'lavfi',
    '-i',
    'sine=d=1',
    '-c:a',
    'aac',
    '-f',
    'adts',
    '-',
  ]);
  for (const file of [toneWav(1), m4a]) {
    const body = new FormData();
    body.append('model', 'multilingual-base');
    body.append('file', new Blob([Uint8Array.from(file)]), 'a');
    const response = await fetch(`${server.base}/v1/audio/transcriptions`, { method: 'POST', body });
    assert([400, 503].includes(response.status), `${response.status} ${await response.text()}`);
  }
  assert.equal((await fetch(`${server.base}/health`)).status, 200);
  writeFileSync(join(at, 'pids.max'), 'max');
  assert.equal(await transcribe(server), SERVED);
});

test('the memory of the container is what models get three quarters of', async (t) => {
  const limiter = group('memory', { 'memory.limit_in_bytes': String(1024 ** 3) });
  if (limiter === null) return t.skip(NO_GROUPS);
  const [command = '', ...args] = limiter;
  const script = `import('${ROOT}src/config/config.ts').then(({ readConfig }) => console.log(readConfig({}).config.modelMemoryBytes))`;
  const node = [process.execPath, '--import', 'tsx', '-e', script];
  const { stdout, stderr } = spawnSync(command, [...args, ...node], { cwd: ROOT, encoding: 'utf8' });
  await removeGroups();
  assert.equal(stdout.trim(), String(0.75 * 1024 ** 3), stderr);
  assert(cgroupLimits().memoryBytes > 1024 ** 3, 'this process has more');
});
