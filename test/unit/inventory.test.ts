/** The list of what the upstreams serve: how long their answers count, and since when an upstream is as it is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { createInventory } from '../../src/proxy/inventory.ts';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { until } from '../until.ts';

test('the answers of the upstreams are kept for two seconds', async () => {
  await using upstream = await startHostileUpstream();
  const { config } = readConfig({ SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url });
  let clockMs = 0;
  const inventory = createInventory(config, { info() {}, warn() {} }, () => clockMs);
  const asked = async () => {
    await inventory.models();
    return upstream.heads.length;
  };
  const once = await asked();
  clockMs = 1999;
  assert.equal(await asked(), once);
  clockMs = 2000;
  assert.equal(await asked(), 2 * once);
});

test('since when an upstream is as it is stays until it is otherwise', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('', '503 X'));
  const { config } = readConfig({ SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url });
  let clockMs = 0;
  const inventory = createInventory(config, { info() {}, warn() {} }, () => clockMs);
  const health = async () => {
    clockMs += 2000;
    const startedAt = Date.now();
    const found = (await inventory.health()).find(({ category }) => category === 'llm');
    assert(found);
    return { kind: found.problem?.kind, since: found.since.getTime(), isNew: +found.since >= startedAt };
  };
  const first = await health();
  assert.deepEqual([first.kind, first.isNew], ['status', true]);
  await until('the clock has moved', () => Date.now() > first.since);
  const again = await health();
  assert.deepEqual([again.since, again.isNew], [first.since, false]);
  upstream.behave(wholeAnswer('{"data":[]}'));
  const better = await health();
  assert.deepEqual([better.kind, better.isNew], [undefined, true]);
});
