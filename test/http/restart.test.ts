/** A gateway that is stopped and started again with the same settings and folders forgets its state. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { form, type Gateway, json, post, startGateway, toneWav } from './harness.ts';

const KEYS = ['metrics', 'access_log', 'payload'];

async function switches({ base }: Gateway): Promise<(string | undefined)[]> {
  const page = await (await fetch(`${base}/admin/fragments/observability`)).text();
  const shown = (key: string) =>
    new RegExp(`aria-checked="(true|false)" aria-labelledby="switch-${key}"`).exec(page);
  return KEYS.map((key) => shown(key)?.[1]);
}

async function turn({ base }: Gateway, key: string, value: string): Promise<void> {
  const body = new FormData();
  body.append('key', key);
  body.append('value', value);
  const response = await fetch(`${base}/admin/api/observability/toggle`, { method: 'POST', body });
  assert.equal(response.status, 200);
}

test('a restart begins without traffic, and with the switches as the settings have them', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-restart-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const env = { SVC_OBS_LOG_DIR: join(dir, 'logs'), SVC_OBS_PAYLOAD_DIR: join(dir, 'payloads') };
  const categories = async ({ base }: Gateway) =>
    Object.keys((await json(await fetch(`${base}/admin/api/metrics`))).categories);
  {
    await using first = await startGateway({ env });
    assert.deepEqual(await switches(first), ['true', 'true', 'false'], 'what is on by default');
    await (await post(first, form(toneWav(0.5)))).text();
    assert.deepEqual(await categories(first), ['asr']);
    for (const [key, value] of [
      ['metrics', 'off'],
      ['access_log', 'off'],
      ['payload', 'on'],
    ] as const)
      await turn(first, key, value);
    assert.deepEqual(await switches(first), ['false', 'false', 'true']);
  }
  await using second = await startGateway({ env });
  assert.deepEqual(await categories(second), []);
  assert.deepEqual(await switches(second), ['true', 'true', 'false']);
  const opposite = {
    SVC_OBS_METRICS_ENABLED: '0',
    SVC_OBS_ACCESS_LOG_ENABLED: '0',
    SVC_OBS_PAYLOAD_ENABLED: '1',
  };
  await using third = await startGateway({ env: { ...env, ...opposite } });
  assert.deepEqual(await switches(third), ['false', 'false', 'true']);
});
