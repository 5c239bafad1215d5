/** Capture that the disk has switched off comes back once the disk takes files, unless an operator has spoken since. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createCaptureRetry } from '../../src/capture/capture-retry.ts';
import { readConfig } from '../../src/config/config.ts';
import { createInstruments } from '../../src/observability/instruments.ts';
import { until } from '../until.ts';
import { folder, IDLE, onSmallDisk, recordingLog } from './observability-fixtures.ts';

const AGAIN = 'info Payload capture is on again, because the disk takes captures';

test('a full disk is left alone until it has room to spare', (t) =>
  onSmallDisk(t, 64, async (dir) => {
    const { log, lines } = recordingLog();
    let resumed = 0;
    const retry = createCaptureRetry({
      ...{ dir, log, firstMs: 5, mostMs: 20, spareBytes: 32 * 1024 },
      resume: () => {
        resumed += 1;
      },
    });
    writeFileSync(join(dir, 'other'), Buffer.alloc(48 * 1024));
    retry.failed();
    await until('it has looked three times', () => lines.length === 3);
    assert.equal(resumed, 0);
    rmSync(join(dir, 'other'));
    await until('it is on again', () => resumed === 1);
    assert.deepEqual([lines.at(-1), readdirSync(dir)], [AGAIN, []]);
    retry.cancel();
  }));

test('it looks ever more seldom, also where capture fails again each time', async (t) => {
  const timeouts = t.mock.method(globalThis, 'setTimeout');
  let resumed = 0;
  const retry = createCaptureRetry({
    ...{ dir: folder(t), log: recordingLog().log, spareBytes: 0, firstMs: 125, mostMs: 500 },
    resume: () => {
      resumed += 1;
    },
  });
  const waits: (number | undefined)[] = [];
  for (let failure = 1; failure <= 4; failure += 1) {
    timeouts.mock.resetCalls();
    retry.failed();
    waits.push(timeouts.mock.calls[0]?.arguments[1]);
    while (resumed < failure) await turn();
  }
  assert.deepEqual(waits, [125, 250, 500, 500]);
});

test('a disk that fails switches capture off and on again, and what an operator says stays', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const dir = join(folder(t), 'payloads');
  const { log, lines } = recordingLog();
  const env = { SVC_OBS_PAYLOAD_ENABLED: 'on', SVC_OBS_PAYLOAD_DIR: dir, SVC_OBS_LOG_DIR: folder(t) };
  const { observability } = readConfig(env).config;
  const instruments = createInstruments(observability, { ...IDLE, log });
  const { toggles } = instruments;
  const waitFor = async (isSo: () => boolean) => {
    for (let n = 0; n < 10_000 && !isSo(); n += 1) await turn();
    assert(isSo());
  };
  const fail = async () => {
    rmSync(dir, { recursive: true, force: true });
    writeFileSync(dir, 'a file in place of the folder');
    instruments.beginCapture('r1', new Date())?.request(Buffer.from('x'));
    await waitFor(() => !toggles.payload);
  };
  await fail();
  rmSync(dir);
  t.mock.timers.tick(60_000);
  await waitFor(() => toggles.payload);
  assert.equal(lines.at(-1), AGAIN);
  await fail();
  toggles.payload = false;
  rmSync(dir);
  mkdirSync(dir);
  t.mock.timers.tick(3_600_000);
  for (let n = 0; n < 1000; n += 1) await turn();
  assert.deepEqual([toggles.payload, instruments.captureFailure()], [false, null]);
  await instruments.close();
});
