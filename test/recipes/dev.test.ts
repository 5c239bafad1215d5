/** What the recipes of docs/recipes build upon: `npm run dev`, and a build in a copy of the tree. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../../bench/common/processes.ts';
import { until } from '../until.ts';
import { createWorkingCopy } from './working-copy.ts';

const LIMIT_MS = 60_000;

test('npm run dev serves the sources, and a change as soon as it is saved', async () => {
  const port = await freePort(); // it stays the same after a restart
  await using copy = createWorkingCopy({ ownBuild: false });
  const address = await copy.serve(`SVC_PORT=${port} npm run dev`);
  const health = () => fetch(`${address}/health`).then((answer) => answer.text());
  assert.match(await health(), /"status":"ok"/);

  const handler = join(copy.dir, 'src/http/health.ts');
  writeFileSync(handler, readFileSync(handler, 'utf8').replace("status: 'ok'", "status: 'changed'"));
  const isServed = async () => (await health().catch(() => '')).includes('"status":"changed"');
  await until('the change is served', isServed, LIMIT_MS);
});

test('the sources build where the packages are a link to another folder', async () => {
  await using copy = createWorkingCopy({ ownBuild: false });
  const { code, output } = await copy.run('npm run --silent build -- ts');
  assert.equal(code, 0, output);
});
