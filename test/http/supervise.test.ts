/** `voxgate serve --supervised` is started again when it crashes, and says why. These tests kill real processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../bench/common/processes.ts';
import { pauseAfter } from '../../src/cli/supervise.ts';
import { program } from '../program.ts';
import { sideBySide } from '../side-by-side.ts';
import { until } from '../until.ts';
import { form, json, toneWav } from './harness.ts';
import {
  answers,
  childOf,
  holdsSlot,
  refusesConnections,
  SCRIPTED,
  type Served,
  SUPERVISED,
  serve,
} from './served.ts';

/** The machine may be busy, so a process gets this long for what it does in less than a second. */
const LIMIT_MS = 20_000;
const ROOT = new URL('../../', import.meta.url).pathname;
const skip = process.platform !== 'linux' && 'the children of a process are found in /proc';

interface Scene extends Served {
  dir: string;
  settings: NodeJS.ProcessEnv;
  /** The id of the server, which is the child of the supervisor. */
  server(): number;
  /** Sends a transcription whose prompt says what the engine does. */
  transcribe(prompt?: string): Promise<Response>;
  /** The prompt of a transcription that ends after `release`. */
  untilReleased: string;
  release(): void;
  crashes(): Promise<any[]>;
}

async function begin(t: TestContext, command = SUPERVISED): Promise<Scene> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-supervise-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const settings = { SVC_TMP_DIR: join(dir, 'tmp'), SVC_CRASH_DIR: join(dir, 'crashes') };
  const served = await serve(settings, command);
  const released = join(dir, 'released');
  const server = () => childOf(served.child.pid ?? 0);
  t.after(() => {
    for (const pid of [served.child.pid ?? 0, server()]) if (pid > 0) kill(pid);
  });
  return Object.assign(served, {
    ...{ dir, settings, server, untilReleased: `until ${released}` },
    transcribe: (prompt = '') =>
      fetch(`${served.base}/v1/audio/transcriptions`, {
        // A connection of its own: one that is kept from the dead server would lose a second request.
        ...{ method: 'POST', body: form(toneWav(0.3), { prompt }), headers: { Connection: 'close' } },
      }),
    release: () => writeFileSync(released, ''),
    crashes: async () => (await json(await fetch(`${served.base}/admin/api/crashes`))).crashes,
  });
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}

/** Kills the server, and waits until another one answers in its place. Returns the time that took, in ms. */
async function killServer(scene: Scene, signal: NodeJS.Signals): Promise<number> {
  const killed = scene.server();
  const startedAt = performance.now();
  process.kill(killed, signal);
  await until('another server', () => ![0, killed].includes(scene.server()), LIMIT_MS);
  await until('it answers', () => answers(scene.base), LIMIT_MS);
  return performance.now() - startedAt;
}

test('a server that is killed in the middle of 50 requests loses those in flight and no others', {
  skip,
}, async (t) => {
  await using scene = await begin(t);
  const doomed = scene.server();
  const [clients, requests] = [4, 50];
  let sent = 0;
  let served = 0;
  let lost = 0;
  /** Sends one request as often as it is refused while the slot is busy. */
  async function send(prompt: string): Promise<void> {
    for (const end = Date.now() + 6 * LIMIT_MS; Date.now() < end; ) {
      try {
        const response = await scene.transcribe(prompt);
        const { text, error } = await json(response);
        if (response.status === 200) {
          assert.equal(text, 'Hello there.');
          served += 1;
          return;
        }
        assert.equal(error.code, 'slot_busy');
      } catch (error) {
        const { code } = ((error as Error).cause ?? {}) as { code?: string };
        if (code === undefined) throw error;
        assert.notEqual(code, 'ECONNREFUSED', 'the supervisor keeps the socket');
        lost += 1;
        // The dead process takes connections until the system has buried it.
        await until('its end', () => scene.server() !== doomed, LIMIT_MS);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.fail('a request was refused for too long');
  }
  const client = async () => {
    while (sent < requests) {
      sent += 1;
      await send(sent === requests / 2 ? scene.untilReleased : '');
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  running.catch(() => undefined);
  const heldForLong = async () =>
    (await json(await fetch(`${scene.base}/admin/api/metrics`))).slot.held_for_ms > 500;
  await until('the request that does not end holds the slot', heldForLong, 3 * LIMIT_MS);
  const tookMs = await killServer(scene, 'SIGKILL');
  await running;
  t.diagnostic(`from SIGKILL to the next answer: ${Math.round(tookMs)} ms`);
  t.diagnostic(`${sent} requests: ${served} served, ${lost} lost`);
  assert.equal(served + lost, requests);
  assert(lost >= 1 && lost <= clients, `${lost} requests were lost`);

  const [crash, ...others] = await scene.crashes();
  assert.equal(others.length, 0);
  assert.deepEqual([crash.signal, crash.exit_code, crash.message], ['SIGKILL', null, '']);
  assert.match(crash.request_id, /^[0-9a-f]{16}$/);
  assert(crash.uptime_sec > 0);
  assert(
    crash.lines.some((line: string) => line.includes(' info  transcribed ')),
    crash.lines.join('\n'),
  );
  const page = await (await fetch(`${scene.base}/admin/fragments/crashes`)).text();
  assert(page.includes('SIGKILL') && page.includes(crash.request_id));
  const folders = readdirSync(join(scene.dir, 'tmp'));
  assert.equal(folders.length, 1, 'the uploads of the server that was killed are gone');
});

test('an exception that nothing catches ends the server with 1, and the record has its stack', {
  skip,
}, async (t) => {
  await using scene = await begin(t);
  const first = scene.server();
  const id = { 'X-Request-ID': 'the-one' };
  const body = form(toneWav(1), { prompt: 'throw' });
  await assert.rejects(fetch(`${scene.base}/v1/audio/transcriptions`, { method: 'POST', body, headers: id }));
  await until('another server', () => ![0, first].includes(scene.server()), LIMIT_MS);
  await until('it answers', () => answers(scene.base), LIMIT_MS);
  const [crash] = await scene.crashes();
  assert.deepEqual([crash.exit_code, crash.signal, crash.request_id], [1, null, 'the-one']);
  assert.match(crash.message, /^Error: nothing catches this\n +at .*scripted-serve/);
  assert(crash.lines.some((line: string) => line.includes('uncaughtException: Error: nothing catches this')));
});

test('a supervisor that is told to stop lets the running request end, even if the server is told too', {
  skip,
}, async (t) => {
  await using scene = await begin(t);
  const running = scene.transcribe(scene.untilReleased);
  await until('it holds the slot', () => holdsSlot(scene.base), LIMIT_MS);
  // A service manager may signal the whole group, and the supervisor passes its own signal on.
  process.kill(scene.server(), 'SIGTERM');
  scene.child.kill('SIGTERM');
  await refusesConnections(scene.port);
  scene.release();
  assert.equal((await json(await running)).text, 'Hello there.');
  await scene.ended;
  assert.equal(scene.child.exitCode, 0, scene.log());
  assert(!existsSync(join(scene.dir, 'crashes')), 'a stop is no crash');
});

test('a server that is told to stop before it serves ends in order, and that is no crash', {
  skip,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-early-stop-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const env = { ...process.env, SVC_PORT: '0', SVC_CRASH_DIR: dir, SVC_OBS_ACCESS_LOG_ENABLED: '0' };
  const child = spawn(process.execPath, SCRIPTED, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'ignore'] });
  let log = '';
  child.stdout.on('data', (data) => (log += data));
  const ended = once(child, 'close');
  // Node itself catches SIGTERM, and not SIGHUP, the first of the signals in the mask.
  const caught = () =>
    Number(/SigCgt:.*(.)$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) % 2;
  await until('it runs', () => caught() === 1, LIMIT_MS);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null], log);
  assert.deepEqual(readdirSync(dir), []);
});

test('a closed terminal stops both as a service manager does, however often it says so', {
  skip,
}, async (t) => {
  await using scene = await begin(t);
  const running = scene.transcribe(scene.untilReleased);
  await until('it holds the slot', () => holdsSlot(scene.base), LIMIT_MS);
  const server = scene.server();
  for (const pid of [scene.child.pid ?? 0, server]) process.kill(pid, 'SIGHUP');
  await refusesConnections(scene.port);
  for (const pid of [scene.child.pid ?? 0, server]) process.kill(pid, 'SIGHUP');
  scene.release();
  assert.equal((await json(await running)).text, 'Hello there.');
  await scene.ended;
  assert.equal(scene.child.exitCode, 0, scene.log());
  assert(!existsSync(join(scene.dir, 'crashes')), 'a stop is no crash');
});

test('a second signal ends the supervisor and the server at once', { skip }, async (t) => {
  await using scene = await begin(t);
  const running = scene.transcribe(scene.untilReleased);
  await until('it holds the slot', () => holdsSlot(scene.base), LIMIT_MS);
  const server = scene.server();
  scene.child.kill('SIGTERM');
  await refusesConnections(scene.port);
  scene.child.kill('SIGTERM');
  await assert.rejects(running);
  await scene.ended;
  assert.equal(scene.child.exitCode, 1, scene.log());
  assert.throws(() => process.kill(server, 0), { code: 'ESRCH' });
});

test('a server whose supervisor is killed ends too, and its port is free', { skip }, async (t) => {
  await using scene = await begin(t);
  const server = scene.server();
  scene.child.kill('SIGKILL');
  await refusesConnections(scene.port);
  const isGone = () => {
    try {
      process.kill(server, 0);
      return false;
    } catch {
      return true;
    }
  };
  await until('the server has ended', isGone, LIMIT_MS);
  await using _next = await serve({ ...scene.settings, SVC_PORT: String(scene.port) }, SCRIPTED);
});

test('a setting that only the server can judge ends the supervisor with 2, and that is no crash', {
  skip,
}, async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-supervise-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const env = { ...process.env, SVC_PORT: '0', SVC_CRASH_DIR: dir, SVC_CPU: 'neon' };
  const child = spawn(process.execPath, SUPERVISED, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (log += data));
  let end: unknown[] = [];
  child.once('close', (...how) => (end = how));
  await until('it ends', () => end.length > 0, LIMIT_MS);
  assert.deepEqual(end, [2, null], log);
  assert.match(log, /^voxgate: SVC_CPU cannot be "neon": [^\n]+\n$/);
  assert.deepEqual(readdirSync(dir), []);
});

/** A supervisor that waits for heartbeats a shorter time, and has its records in a folder of the test. */
function serveImpatiently(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-supervise-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const supervisor = [...program('test/http/impatient-supervisor.ts'), '60000'];
  return serve({ SVC_CRASH_DIR: dir }, [...supervisor, ...SCRIPTED, '--child']);
}

/** These wait for pauses and heartbeats of whole seconds. */
sideBySide(() => {
  test('a server that cannot start is tried again with pauses, and its supervisor can be stopped meanwhile', {
    skip,
  }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'voxgate-supervise-test-'));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const taken = createServer((_req, res) => res.end());
    const port = await freePort();
    taken.listen(port, '127.0.0.1');
    await once(taken, 'listening');
    t.after(() => taken.close());
    await using served = await serve({ SVC_PORT: String(port), SVC_CRASH_DIR: dir }, SUPERVISED);
    const pauses = () =>
      [...served.log().matchAll(/started again .*pauseSec=(\d+)/g)].map(([, sec]) => Number(sec));
    await until('three attempts', () => pauses().length === 3, 3 * LIMIT_MS);
    assert.deepEqual(pauses(), [0, 1, 2]);
    served.child.kill('SIGTERM');
    await served.ended;
    assert.equal(served.child.exitCode, 0, served.log());
    assert.deepEqual(readdirSync(dir), [], 'its failures would push out the records of crashes');
  });

  test('a server whose event loop stands still is killed, recorded and started again', {
    skip,
  }, async (t) => {
    await using served = await serveImpatiently(t);
    const first = childOf(served.child.pid ?? 0);
    const startedAt = performance.now();
    process.kill(first, 'SIGSTOP'); // it lives, and does nothing
    const next = () => ![0, first].includes(childOf(served.child.pid ?? 0));
    await until('another server', next, LIMIT_MS);
    await until('it answers', () => answers(served.base), LIMIT_MS);
    t.diagnostic(`from the standstill to the next answer: ${Math.round(performance.now() - startedAt)} ms`);
    assert.match(served.log(), /error +the event loop of the server has stood still for 5 s: it is killed/);
    const { crashes } = await json(await fetch(`${served.base}/admin/api/crashes`));
    assert.deepEqual([crashes.length, crashes[0].signal, crashes[0].pid], [1, 'SIGKILL', first]);
  });

  test('a machine that is paused kills no server', { skip }, async (t) => {
    await using served = await serveImpatiently(t);
    const server = childOf(served.child.pid ?? 0);
    for (const pid of [server, served.child.pid ?? 0]) process.kill(pid, 'SIGSTOP');
    await sleep(8000); // longer than the heartbeats that it may miss
    for (const pid of [served.child.pid ?? 0, server]) process.kill(pid, 'SIGCONT');
    const resumedAt = performance.now();
    await until('some heartbeats', () => performance.now() - resumedAt > 3000, LIMIT_MS);
    assert.equal(childOf(served.child.pid ?? 0), server, served.log());
    assert.doesNotMatch(served.log(), /stood still/);
    assert(await answers(served.base));
  });
});

test('the pauses of a crash loop grow to 30 s', () => {
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 100].map(pauseAfter),
    [0, 0, 1, 2, 4, 8, 16, 30, 30, 30].map((sec) => sec * 1000),
  );
});
