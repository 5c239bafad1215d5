/** The most memory that live sessions take: each sends the largest messages, which are read no faster than heard. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { COMPLETED, connectLive, type LiveClient } from '../http/realtime.ts';
import { SCRIPTED, serve } from '../http/served.ts';
import { until } from '../until.ts';

const skip = process.platform !== 'linux' && '/proc is on Linux only';
const MIB = 1024 * 1024;
const SESSIONS = 32;
/**
 * Four sessions at a time may be in the middle of a large message, which takes several times its 15 MiB while it is read.
 * The others hold what their sockets have read.
 */
const MOST_BYTES = 400 * MIB;

/** Much more than it takes on a machine with other work. */
const MOST_HEALTH_SEC = 10;
const run = promisify(execFile);

const peakBytes = (pid: number) =>
  1024 * Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

test('32 sessions that send messages of almost 16 MiB of telephony take bounded memory, and others are served', {
  skip,
}, async (t) => {
  await using gateway = await serve({ SVC_LIVE_WAIT_SEC: '60' }, SCRIPTED);
  const pid = gateway.child.pid as number;
  const before = peakBytes(pid);
  // Silence of 24 min: each byte becomes two samples of 4 bytes, the most that a byte can become.
  const audio = Buffer.alloc(11 * MIB, 0xff).toString('base64');
  const message = JSON.stringify({ type: 'input_audio_buffer.append', audio });
  const clients: LiveClient[] = [];
  try {
    for (let i = 0; i < SESSIONS; i += 1) clients.push(await connectLive(gateway));
    for (const client of clients) {
      client.send({
        type: 'session.update',
        session: { audio: { input: { format: { type: 'audio/pcmu' } } } },
      });
      client.socket.send(message);
      client.socket.send(message);
    }
    await until(
      'every session has been read',
      () => clients.every(({ events }) => events.some(({ type }) => type === 'session.updated')),
      120_000,
    );
    await new Promise((resolve) => setTimeout(resolve, 1000)); // the time in which the messages come in
    // A process of its own asks, because this one is busy with sending.
    const { stdout } = await run('curl', [
      '-s',
      '-w',
      '%{http_code} %{time_total}',
      '-o',
      '/dev/null',
      `${gateway.base}/health`,
    ]);
    const [status, seconds] = stdout.split(' ').map(Number);
    assert.equal(status, 200);
    t.diagnostic(`/health after ${seconds} s`);
    assert((seconds ?? 0) < MOST_HEALTH_SEC, `${seconds} s`);
  } finally {
    for (const { socket } of clients) socket.terminate();
  }
  const taken = peakBytes(pid) - before;
  t.diagnostic(`${(taken / MIB / SESSIONS).toFixed(0)} MiB for each session at the peak`);
  assert(taken < MOST_BYTES, `${(taken / MIB).toFixed(0)} MiB`);
  let next: LiveClient | null = null;
  await until(
    'their places are free',
    async () => {
      next = await connectLive(gateway).catch(() => null);
      return next !== null;
    },
    15_000, // less than the 20 s between pings of a session that is read
  );
  await using last = next as unknown as LiveClient;
  const loud = Buffer.from(Uint8Array.from({ length: 24_000 }, (_, i) => ((i >> 3) & 1 ? 0x10 : 0xf0)));
  for (const bytes of [loud, Buffer.alloc(96_000)])
    last.send({ type: 'input_audio_buffer.append', audio: bytes.toString('base64') });
  await last.event(COMPLETED);
});
