/** These tests say which requests are captured; other tests say what a capture holds. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { form, post, startGateway, toneWav, until } from './harness.ts';

test('only inference is captured', async () => {
  await using gateway = await startGateway({ env: { SVC_OBS_PAYLOAD_ENABLED: '1' } });
  const headers = { 'X-Request-ID': 'no-inference' };
  for (const [method, path] of [
    ['GET', '/health'],
    ['GET', '/v1/models'],
    ['GET', '/admin/api/metrics'],
    ['POST', '/admin/api/reset-asr-state'],
    ['GET', '/nowhere'],
  ] as const)
    await (await fetch(gateway.base + path, { method, headers })).text();
  await (await post(gateway, form(toneWav(0.5)), { headers: { 'X-Request-ID': 'inference' } })).text();
  const { payloadDir } = gateway.config.observability;
  const captures = () =>
    existsSync(payloadDir) ? readdirSync(payloadDir, { recursive: true }).map(String) : [];
  const complete = () => captures().some((path) => path.endsWith(join('inference', 'meta.json')));
  await until('the last request is captured', complete);
  // Captures are written in the order of their requests, so an earlier one would be there by now.
  assert(!captures().some((path) => path.includes('no-inference')), captures().join(', '));
});
