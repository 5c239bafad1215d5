/** `npm run dev` shows a change without a build. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../until.ts';
import { createWorkingCopy } from './working-copy.ts';

const LIMIT_MS = 60_000;

test('npm run dev serves the sources, and a change as soon as it is saved', async () => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo; // the port stays the same after a restart
  probe.close();
  await once(probe, 'close');

  await using copy = createWorkingCopy({ ownBuild: false });
  const address = await copy.serve(`SVC_PORT=${port} npm run dev`);
  const health = () => fetch(`${address}/health`).then((answer) => answer.text());
  assert.match(await health(), /"status":"ok"/);

  const handler = join(copy.dir, 'src/http/health.ts');
  writeFileSync(handler, readFileSync(handler, 'utf8').replace("status: 'ok'", "status: 'changed'"));
  const isServed = async () => (await health().catch(() => '')).includes('"status":"changed"');
  await until('the change is served', isServed, LIMIT_MS);
});
