/** What many live sessions leave behind: clients that say something, that leave while they speak, and that say nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertFlat, heldAround } from '../faults/flat.ts';
import { heard, startGateway } from '../http/harness.ts';
import { at16kHz, COMPLETED, connectLive, silence, tone } from '../http/realtime.ts';
import { MODEL, needsWeights, startRealGateway } from '../model/gateway.ts';
import { samplesOfJfk } from '../model/jfk.ts';

const skip = process.platform !== 'linux' && '/proc is on Linux only';
const AT_ONCE = 8;

/** Runs sessions, some at a time. */
async function runSessions(count: number, session: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const client = async () => {
    for (let i = next++; i < count; i = next++) await session(i);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
}

test('heap, memory, descriptors and threads are flat over 2,000 live sessions', { skip }, async (t) => {
  await using gateway = await startGateway({
    transcribe: async () => heard(' Hello there.'),
    env: { SVC_LOG_LEVEL: 'error', SVC_OBS_METRICS_WINDOW_SEC: '1' },
  });
  let texts = 0;
  const session = async (i: number) => {
    await using client = await connectLive(gateway);
    client.send(at16kHz({ transcription: { delay: i % 2 === 0 ? 'minimal' : 'xhigh' } }));
    client.speak(tone(1));
    if (i % 4 === 3) return; // its client leaves while it speaks
    client.speak(silence(1));
    await client.event(COMPLETED);
    texts += 1;
    gateway.exchanges.length = 0;
  };
  const around = await heldAround(gateway, {
    warmUp: () => runSessions(200, session),
    work: () => runSessions(2000, session),
  });
  t.diagnostic(JSON.stringify(around));
  assert.equal(texts, (2200 * 3) / 4);
  assertFlat(around);
});

test('memory, descriptors and threads are flat over 60 live sessions of real speech', { skip }, async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  const speech = samplesOfJfk().subarray(0, 4 * 16_000);
  const session = async (i: number) => {
    await using client = await connectLive(gateway);
    client.send(at16kHz({ transcription: { model: MODEL, language: 'en', delay: 'minimal' } }));
    client.speak(speech);
    if (i % 4 === 3) return;
    client.speak(silence(1));
    assert.match((await client.event(COMPLETED)).transcript, /\w/);
  };
  const isAtRest = () => (gateway.app.slot.status().holder === null ? 0 : 1);
  const around = await heldAround(
    { running: isAtRest, uploads: () => [] },
    { warmUp: () => runSessions(2 * AT_ONCE, session), work: () => runSessions(60, session) },
  );
  t.diagnostic(JSON.stringify(around));
  assertFlat(around);
});
