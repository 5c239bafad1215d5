/** Clients that come while a supervisor exchanges its server wait for the next one. These tests end real processes. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { freePort } from '../../bench/common/processes.ts';
import { program } from '../program.ts';
import { sideBySide } from '../side-by-side.ts';
import { until } from '../until.ts';
import { toneWav } from './harness.ts';
import { answers, childOf, holdsSlot, SCRIPTED, type Served, SUPERVISED, serve } from './served.ts';
import { connectWyoming } from './wyoming.ts';

/** The machine may be busy, so a process gets this long for what it does in less than a second. */
const LIMIT_MS = 20_000;
const skip = process.platform !== 'linux' && 'the children of a process are found in /proc';

interface Scene extends Served {
  wyomingPort: number;
  server(): number;
  /** Resolves when another server is there than the one that was there before `end`. */
  exchange(end: () => void): Promise<void>;
}

async function begin(t: TestContext, command = SUPERVISED): Promise<Scene> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-kept-sockets-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const wyomingPort = await freePort();
  const settings = {
    SVC_TMP_DIR: join(dir, 'tmp'),
    SVC_CRASH_DIR: join(dir, 'crashes'),
    SVC_WYOMING_PORT: String(wyomingPort),
    SVC_MAX_WAIT_SEC: '60',
    SVC_DEFAULT_WAIT_SEC: '60',
  };
  const served = await serve(settings, command);
  const server = () => childOf(served.child.pid ?? 0);
  return Object.assign(served, {
    wyomingPort,
    server,
    async exchange(end: () => void) {
      const old = server();
      end();
      await until('another server', () => ![0, old].includes(server()), LIMIT_MS);
    },
  });
}

interface Answer {
  status: number;
  code: string | undefined;
}

/** Sends a request on a connection of its own. */
function ask(port: number, path: string, body?: Buffer, headers = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST';
    const signal = AbortSignal.timeout(3 * LIMIT_MS);
    const options = { port, host: '127.0.0.1', path, method, agent: false, headers, signal };
    const req = request(options, (res) => {
      let text = '';
      res.on('data', (data) => (text += data));
      res.once('error', reject);
      res.once('close', () => {
        if (!res.complete) return;
        resolve({ status: res.statusCode ?? 0, code: JSON.parse(text).error?.code });
      });
    });
    req.once('error', reject).end(body);
  });
}

/** A form with a short clip. */
async function clip(prompt = ''): Promise<{ body: Buffer; headers: Record<string, string> }> {
  const data = new FormData();
  data.append('file', new Blob([toneWav(0.3)]), 'tone.wav');
  data.append('prompt', prompt);
  const whole = new Request('http://127.0.0.1', { method: 'POST', body: data });
  const type = whole.headers.get('Content-Type') ?? '';
  return { body: Buffer.from(await whole.arrayBuffer()), headers: { 'Content-Type': type } };
}

test('of 400 requests across two restarts and a SIGKILL, only those that the killed server held are lost', {
  skip,
}, async (t) => {
  await using scene = await begin(t);
  const { body, headers } = await clip();
  const [clients, requests] = [8, 400];
  const lost: { error: NodeJS.ErrnoException; sentAt: number }[] = [];
  let sent = 0;
  let served = 0;
  let askedAgain = 0;
  async function send(number: number): Promise<void> {
    if (number % 50 === 0) {
      await using wyoming = await connectWyoming(scene);
      wyoming.send('describe');
      const info = await wyoming.event('info').catch((error) => error);
      // Wyoming has no answer that says "again"; a connection that the old server had taken ends.
      if (info instanceof Error && !wyoming.closed()) throw info;
      return;
    }
    const isClip = number % 10 === 5;
    for (;;) {
      const answer = isClip
        ? await ask(scene.port, '/v1/audio/transcriptions', body, headers)
        : await ask(scene.port, '/v1/models');
      if (answer.status === 200) return;
      // It came on a connection that the old server had taken before its stop, or waited in its line.
      assert.equal(answer.code, 'shutting_down');
      askedAgain += 1;
    }
  }
  const client = async () => {
    while (sent < requests) {
      sent += 1;
      const sentAt = performance.now();
      try {
        await send(sent);
        served += 1;
      } catch (error) {
        lost.push({ error: error as Error, sentAt });
      }
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  running.catch(() => undefined);
  for (let restart = 1; restart <= 2; restart++) {
    await until(`${restart * 100} requests`, () => sent >= restart * 100, 3 * LIMIT_MS);
    await scene.exchange(() => scene.child.kill('SIGUSR2'));
  }
  await until('300 requests', () => sent >= 300, 3 * LIMIT_MS);
  const lostByRestarts = lost.splice(0);
  assert.deepEqual(lostByRestarts, []);
  let killedAt = 0;
  await scene.exchange(() => {
    process.kill(scene.server(), 'SIGKILL');
    killedAt = performance.now();
  });
  await running;
  t.diagnostic(`${served} served, ${askedAgain} of them asked again, ${lost.length} lost`);
  assert.equal(served + lost.length, requests);
  assert(lost.length <= clients, `${lost.length} are lost: ${lost.map(({ error }) => error.message)}`);
  for (const { error, sentAt } of lost) {
    assert(sentAt <= killedAt, `one is lost that came ${sentAt - killedAt} ms after the kill`);
    assert.notEqual(error.code, 'ECONNREFUSED');
  }
  const crashes = scene.log().match(/the server has ended/g) ?? [];
  assert.equal(crashes.length, 1, 'a restart is no crash');
});

/** These wait for a transcription, and for a server that never serves. */
sideBySide(() => {
  test('clients that come while the old server ends its last request wait for the next one', {
    skip,
  }, async (t) => {
    await using scene = await begin(t);
    const { body, headers } = await clip('sleep 1500');
    const old = scene.server();
    const running = ask(scene.port, '/v1/audio/transcriptions', body, headers);
    await until('it holds the slot', () => holdsSlot(scene.base), LIMIT_MS);
    scene.child.kill('SIGUSR2');
    await until('it stops', () => /asked by the supervisor: stopping/.test(scene.log()), LIMIT_MS);
    const waiting = ask(scene.port, '/v1/models').then((answer) => ({ answer, server: scene.server() }));
    assert.equal((await running).status, 200);
    const { answer, server } = await waiting;
    assert.equal(answer.status, 200);
    assert.notEqual(server, old, 'the old one has accepted nothing more');
  });

  test('clients are refused when the next server does not serve in time, and a later one serves again', {
    skip,
  }, async (t) => {
    await using scene = await begin(t, [
      ...program('test/http/impatient-supervisor.ts'),
      '3000',
      ...SCRIPTED,
      '--child',
    ]);
    await scene.exchange(() => process.kill(scene.server(), 'SIGKILL'));
    const stuck = scene.server();
    const isNode = () => readFileSync(`/proc/${stuck}/cmdline`, 'utf8').includes('--inherits');
    await until('it is a process of its own', isNode, LIMIT_MS); // before, the supervisor would stand still with it
    process.kill(stuck, 'SIGSTOP'); // it starts, and never serves
    await assert.rejects(ask(scene.port, '/v1/models'), { code: 'ECONNRESET' });
    await until('it serves again', () => answers(scene.base), LIMIT_MS);
    assert.notEqual(scene.server(), stuck);
    assert.match(scene.log(), /error +no server has served for 3 s: clients wait no more and are refused/);
  });
});
