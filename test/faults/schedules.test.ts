/** Random schedules end requests, models and the gateway at any moment. Afterwards nothing of them may be left. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSchedules } from './schedules.ts';
import { loadScripted } from './scripted-models.ts';

test('after 120 schedules of requests and what may end them, nothing is left', async (t) => {
  const report = await runSchedules({ first: 1, count: 120, load: loadScripted, pauseMs: 12 });
  t.diagnostic(JSON.stringify(report));
  for (const [what, count] of Object.entries(report)) assert(count > 5, `${what}: ${count}`);
});
