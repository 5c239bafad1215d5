/**
 * `npm run bench -- gpu` measures an NVIDIA GPU and prints one page of Markdown, to be pasted into an issue. It builds
 * what it needs, fetches weights, installs the peers below build/, and takes some hours at its first run; most of that
 * is the compilation of the CUDA library. bench/gpu/report.ts has its steps.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exec, fail, ROOT, run } from './tools.mjs';

const { status, stdout, stderr, error } = spawnSync('nvidia-smi', ['-L'], { encoding: 'utf8' });
if (status !== 0 || !/^GPU \d/m.test(stdout)) {
  const said = error?.code === 'ENOENT' ? 'it is not installed' : `${stderr}${stdout}`.trim().split('\n')[0];
  fail(
    `No NVIDIA GPU answers here (nvidia-smi: ${said}), so there is nothing to measure.`,
    "On a machine with a GPU: install NVIDIA's driver until `nvidia-smi` shows it, and the CUDA toolkit (12.4 or newer).",
    'In a container: start it with the GPU, as in `docker run --gpus all`.',
  );
}
if (!existsSync(join(ROOT, 'node_modules/tsx'))) run('install', 'npm', ['ci', '--no-audit', '--no-fund']);
exec(process.execPath, ['--import', 'tsx', 'bench/gpu/report.ts']);
