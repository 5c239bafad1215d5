/** The gateway of one process: it loads the model of its first request while its own modules load. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startPrivateGateway } from '../../src/cli/private-gateway.ts';
import { readConfig } from '../../src/config/config.ts';
import { chooseDevice } from '../../src/engine/device.ts';
import { createLog } from '../../src/observability/log.ts';
import { type Script, scriptedEngine, scriptedStore } from './harness.ts';

const request = (model?: string) => ({ model, language: undefined, translate: false });

/** @return the weights that were loaded when the gateway listened, and those that were asked for */
async function started(t: TestContext, script: Script, coming?: ReturnType<typeof request>) {
  const loads: string[] = [];
  const wanted: string[] = [];
  const { config } = readConfig({});
  const engine = scriptedEngine(script, { load: (name) => loads.push(name) });
  const store = scriptedStore({ ...script, ensure: async (id) => void wanted.push(id) });
  const device = chooseDevice(config.device, engine.info.devices);
  const parts = { engine, device, store, log: createLog('error') };
  const gateway = await startPrivateGateway(config, parts, coming);
  t.after(() => gateway[Symbol.asyncDispose]());
  return { loads: [...loads], wanted: [...wanted] };
}

test('the model of the first request is loaded while the gateway starts', async (t) => {
  const usual = await started(t, {}, request());
  assert.deepEqual(usual.loads, ['multilingual-base', 'voice-activity']);
  const small = { installed: ['multilingual-base', 'multilingual-small', 'voice-activity'] };
  const named = await started(t, small, request('multilingual-small'));
  assert.deepEqual(named.loads, ['multilingual-small', 'voice-activity']);
});

test('nothing is loaded or fetched before a request that needs a download, or that names no model', async (t) => {
  const nothing = { loads: [], wanted: [] };
  assert.deepEqual(await started(t, {}), nothing);
  assert.deepEqual(await started(t, {}, request('multilingual-small')), nothing);
  assert.deepEqual(await started(t, {}, request('nonsense')), nothing);
  assert.deepEqual(await started(t, { installed: ['multilingual-base'] }, request()), nothing);
});
