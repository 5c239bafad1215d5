/** Many schedules on the scripted backend, and some on a real model. VOXGATE_SCHEDULES asks for another count. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import { runSchedules } from '../faults/schedules.ts';
import { loadScripted } from '../faults/scripted-models.ts';
import { weights } from '../native/fixtures.ts';
import { JFK } from '../wav.ts';

const COUNT = Number(process.env.VOXGATE_SCHEDULES ?? 2_000);

test(`after ${COUNT} schedules of requests and what may end them, nothing is left`, async (t) => {
  const report = await runSchedules({ first: 1000, count: COUNT, load: loadScripted, pauseMs: 12 });
  t.diagnostic(JSON.stringify(report));
  for (const [what, count] of Object.entries(report)) assert(count > COUNT / 100, `${what}: ${count}`);
});

const real = weights('VOXGATE_TEST_MODEL');
test('after 80 schedules on a real model, nothing is left', { skip: real.skip }, async (t) => {
  const load = () =>
    loadNative().loadModel({ family: 'whisper', path: real.path, device: 'cpu', threads: 2 });
  const audio = readFileSync(JFK);
  const report = await runSchedules({ first: 1, count: 80, load, audio, pauseMs: 300 });
  t.diagnostic(JSON.stringify(report));
  for (const [what, count] of Object.entries(report)) assert(count > 2, `${what}: ${count}`);
});
