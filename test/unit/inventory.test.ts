/** The list of what the upstreams serve: these tests say how long their answers count. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { createInventory } from '../../src/proxy/inventory.ts';
import { startHostileUpstream } from '../faults/hostile-upstream.ts';

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
