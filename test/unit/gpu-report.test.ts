/** The page of `npm run bench -- gpu`, and what the script says where there is no GPU. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { agreement, type DeviceRun, gpuPage, parseGpus, reasonOf } from '../../bench/gpu/page.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

const heard = (...tokens: [number, number][]): DeviceRun => ({
  loadMs: 250,
  transcribeMs: 40,
  tokens: tokens.map(([id, logprob]) => ({ id, logprob })),
});

test('each GPU that nvidia-smi lists is one of the report', () => {
  const gpus = parseGpus('NVIDIA A, 24564 MiB, 8.9, 570.86\nNVIDIA B, 81559 MiB, 9.0, 570.86\n');
  assert.deepEqual(gpus[1], {
    ...{ name: 'NVIDIA B', memory: '81559 MiB', capability: '9.0', driver: '570.86' },
  });
  assert.equal(gpus.length, 2);
  assert.deepEqual(parseGpus('NVIDIA-SMI has failed because it could not reach the driver.'), []);
});

test('CPU and GPU are compared up to the first token that differs', () => {
  const cpu = heard([1, -0.5], [2, -0.25], [3, -1], [4, -1]);
  assert.deepEqual(agreement({ cpu, gpu: cpu }), { same: 4, worst: 0 });
  const gpu = heard([1, -0.5], [2, -0.75], [9, -8], [4, -9]);
  assert.deepEqual(agreement({ cpu, gpu }), { same: 2, worst: 0.5 });
  assert.deepEqual(agreement({ cpu, gpu: heard() }), { same: 0, worst: 0 });
});

test('the reason of a failure is the message of an exception, or else the last lines', () => {
  const stack =
    'x.ts:3\nthrow new Error()\n\nError: no GPU in /home/someone/voxgate/build\n    at x\n\nNode.js v20.20.2\n';
  assert.equal(reasonOf(stack), 'Error: no GPU in build');
  assert.equal(
    reasonOf('much\nIt cannot be built.\nInstall a | b\n\n== CUDA: failed\n'),
    'It cannot be built. Install a \\| b',
  );
  assert.equal(reasonOf('\n'), 'it said nothing');
});

test('the page names the steps that were not done, and compares the models that ran', () => {
  const page = gpuPage({
    facts: [['GPU', 'NVIDIA A']],
    steps: [
      { title: 'CUDA library', failure: null, seconds: 1800 },
      { title: 'cjk', failure: 'it cannot be fetched', seconds: 2 },
    ],
    models: [{ model: 'base', cpu: { ...heard([1, -1]), transcribeMs: 80 }, gpu: heard([1, -1.5]) }],
    comparisons: '### Sentences\n',
  });
  const cells = page.split('\n').map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1)
      .join('|'),
  );
  assert(cells.includes('GPU|NVIDIA A'));
  assert(cells.includes('CUDA library|done|1800 s'));
  assert(cells.includes('cjk|not done: it cannot be fetched|2 s'));
  assert(cells.includes('base|1 of 1 and 1|0.5000|80|40|2.00|250'));
  assert(page.endsWith('### Sentences'));
});

test('without a GPU the script says what to do, builds nothing and fails', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-gpu-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const report = () =>
    spawnSync(process.execPath, ['scripts/gpu-report.mjs'], {
      ...{ cwd: ROOT, encoding: 'utf8', env: { ...process.env, PATH: folder } },
    });
  const without = report();
  assert.equal(without.status, 1);
  assert.match(
    without.stderr,
    /^No NVIDIA GPU answers here \(nvidia-smi: it is not installed\)(.|\n)*driver(.|\n)*--gpus all/,
  );
  assert.equal(without.stdout, '');
  writeFileSync(join(folder, 'nvidia-smi'), '#!/bin/sh\necho "NVIDIA-SMI has failed"; exit 9\n', {
    mode: 0o755,
  });
  assert.match(report().stderr, /^No NVIDIA GPU answers here \(nvidia-smi: NVIDIA-SMI has failed\)/);
});
