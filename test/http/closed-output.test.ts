/**
 * The output of a gateway may have no reader any more, or no room. Requests are served on. The other commands fail
 * when their result cannot be written, and they stop working when the reader of their output has left.
 */
import assert from 'node:assert/strict';
import { type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { program } from '../program.ts';
import { startGateway, toneWav } from './harness.ts';
import { type Served, serve } from './served.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

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

/** Runs a command. Its standard output is the given file, or a pipe whose reader has left. */
async function runInto(stdout: number | 'closed', args: readonly string[]) {
  const stdio: StdioOptions = ['ignore', stdout === 'closed' ? 'pipe' : stdout, 'pipe'];
  const child = spawn(process.execPath, [...program('src/main.ts'), ...args], { cwd: ROOT, stdio });
  child.stdout?.destroy();
  let stderr = '';
  child.stderr?.on('data', (data) => (stderr += data));
  const [status] = await once(child, 'close');
  return { status, stderr };
}

function recordings(t: TestContext, count: number): string {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-output-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  for (let n = 0; n < count; n++) writeFileSync(join(dir, `${n}.wav`), toneWav(0.3));
  return dir;
}

test('a command whose result cannot be written says so, fails, and ends its work', async (t) => {
  const full = openSync('/dev/full', 'w');
  t.after(() => closeSync(full));
  await using gateway = await startGateway();
  const transcribe = ['transcribe', '--server', gateway.base, recordings(t, 5)];
  for (const args of [
    ['--help'],
    ['models', '--help'],
    ['config'],
    ['config', '--example'],
    ['completion', 'bash'],
    transcribe,
  ]) {
    const { status, stderr } = await runInto(full, args);
    assert.match(stderr, /^voxgate: the output cannot be written: no space left on device\n$/, args[0]);
    assert.equal(status, 1, args[0]);
  }
  assert(gateway.exchanges.length < 5, `${gateway.exchanges.length} files were heard`);
});

test('a reader that leaves ends a transcription of many files without a trace', async (t) => {
  await using gateway = await startGateway();
  const { status, stderr } = await runInto('closed', [
    ...['transcribe', '--server', gateway.base, recordings(t, 5)],
  ]);
  assert.deepEqual([status, stderr], [0, '']);
  assert(gateway.exchanges.length < 5, `${gateway.exchanges.length} files were heard`);
});
