/** The output of a gateway may have no reader any more, or no room. Requests are served on. */
import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { test } from 'node:test';
import { type Served, serve } from './served.ts';

/** Makes the gateway write lines to its log, and answers whether it still lives. */
async function logs({ base }: Served): Promise<void> {
  for (let times = 0; times < 5; times++) {
    const body = new FormData();
    body.append('key', 'metrics');
    body.append('value', times % 2 === 0 ? 'off' : 'on');
    const response = await fetch(`${base}/admin/api/observability/toggle`, { method: 'POST', body });
    assert.equal(response.status, 200);
    await response.text();
  }
}

test('a gateway whose standard output and error are closed by their reader goes on, and stops in order', async () => {
  await using served = await serve();
  served.child.stderr?.destroy();
  served.child.stdout?.destroy();
  await logs(served);
  served.child.kill('SIGTERM');
  await served.ended;
  assert.deepEqual([served.child.exitCode, served.child.signalCode], [0, null]);
});

test('a gateway whose standard error has no room goes on, and stops in order', async () => {
  const full = openSync('/dev/full', 'w');
  await using served = await serve({}, undefined, ['ignore', full, full]);
  closeSync(full);
  await logs(served);
  served.child.kill('SIGTERM');
  await served.ended;
  assert.deepEqual([served.child.exitCode, served.child.signalCode], [0, null]);
});
