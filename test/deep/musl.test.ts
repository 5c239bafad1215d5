/** The build says where the C library is one that it is not tested with. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';

const ROOT = new URL('../../', import.meta.url).pathname;

/** Configures with another C compiler, which is the one that tells the library; Debian has no C++ compiler for musl. */
function configure(t: TestContext, compiler: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-musl-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const options = ['-DVOXGATE_TESTS=ON', `-DCMAKE_C_COMPILER=${compiler}`];
  const run = spawnSync('cmake', ['-S', ROOT, '-B', folder, '-G', 'Ninja', ...options], { encoding: 'utf8' });
  assert.equal(run.status, 0, run.stdout + run.stderr);
  return run.stderr;
}

test('a build with musl is configured, with a warning that it is not tested', (t) => {
  assert.match(configure(t, 'musl-gcc'), /no glibc \(Alpine has musl\)/);
});

test('a build with glibc is configured without it', (t) => {
  assert.doesNotMatch(configure(t, 'cc'), /glibc/);
});
