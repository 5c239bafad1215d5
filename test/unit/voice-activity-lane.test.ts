/** These tests say how the live sessions share the search for speech, and that it rests while a request computes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createVoiceActivityLane } from '../../src/transcription/live/voice-activity-lane.ts';

const SAMPLES = new Float32Array(512);
const SEARCH_MS = 20;

function world(isSlotHeld: boolean) {
  let running = 0;
  let most = 0;
  const model = {
    async probabilities() {
      running += 1;
      most = Math.max(most, running);
      await sleep(SEARCH_MS);
      running -= 1;
      return new Float32Array(1);
    },
    close: async () => undefined,
  };
  const lane = createVoiceActivityLane(() => isSlotHeld);
  return { sessions: Array.from({ length: 4 }, () => lane(model)), most: () => most };
}

for (const [isSlotHeld, leastMs] of [
  [false, 4 * SEARCH_MS],
  [true, (4 + 3 * 4) * SEARCH_MS],
] as const)
  test(`one session at a time is searched for speech, with a rest while the slot is held: ${isSlotHeld}`, async () => {
    const { sessions, most } = world(isSlotHeld);
    const startedAt = performance.now();
    await Promise.all(sessions.map((session) => session.probabilities(SAMPLES, { reset: true })));
    assert.equal(most(), 1);
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs >= 0.9 * leastMs, `${tookMs} ms`);
  });

test('a session that is ahead of real time waits longer while the slot is held, and delays no other', async () => {
  const { sessions } = world(true);
  const [flood, speaker] = sessions as [(typeof sessions)[0], (typeof sessions)[0]];
  const startedAt = performance.now();
  const tookMs = async (search: Promise<unknown>) => search.then(() => performance.now() - startedAt);
  const second = new Float32Array(16_000);
  const flooded = Array.from({ length: 8 }, () => tookMs(flood.probabilities(second, { reset: true })));
  const spoken = await tookMs(speaker.probabilities(SAMPLES, { reset: true }));
  assert.ok(spoken < 12 * (1 + 4) * SEARCH_MS, `${spoken} ms`);
  const [sixth = 0, seventh = 0] = (await Promise.all(flooded)).slice(5);
  assert.ok(seventh - sixth >= 0.9 * 30 * SEARCH_MS, `${seventh - sixth} ms`);
});

test('a session that has left, or whose search fails, keeps no other one waiting', async () => {
  const lane = createVoiceActivityLane(() => false);
  const close = async () => undefined;
  const broken = lane({ probabilities: () => Promise.reject(new Error('it fails')), close });
  const healthy = lane({ probabilities: async () => new Float32Array(1), close });
  const gone = healthy.probabilities(
    SAMPLES,
    { reset: true },
    { signal: AbortSignal.abort(new Error('left')) },
  );
  await assert.rejects(gone, /left/);
  await assert.rejects(broken.probabilities(SAMPLES, { reset: true }), /it fails/);
  assert.equal((await healthy.probabilities(SAMPLES, { reset: true })).length, 1);
});
