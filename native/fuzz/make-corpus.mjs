/**
 * `node native/fuzz/make-corpus.mjs` makes the seeds of the fuzz targets again: those that ffmpeg encodes, and those
 * that the targets make (`npm run fuzz` has to have compiled them). Inputs that once failed have other names and stay.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const CORPUS = new URL('corpus/', import.meta.url).pathname;
const PROGRAM = new URL('../../build-fuzz/native/fuzz/voxgate-fuzz', import.meta.url).pathname;
const TARGETS = [
  'wav',
  'mp3',
  'flac',
  'vorbis',
  'whisper',
  'parakeet',
  'gguf',
  'sensevoice',
  'silero',
  'text',
];

/** Each is a sound of a tenth of a second: target, sample rate, channels, options of the encoder. */
const ENCODED = [
  ['mp3', 44100, 2, ['-c:a', 'libmp3lame', '-b:a', '64k']],
  ['mp3', 16000, 1, ['-c:a', 'libmp3lame', '-q:a', '9']],
  ['mp3', 8000, 1, ['-c:a', 'libmp3lame', '-b:a', '8k', '-write_xing', '0', '-id3v2_version', '0']],
  ['flac', 16000, 1, ['-c:a', 'flac', '-compression_level', '8']],
  ['flac', 44100, 2, ['-c:a', 'flac', '-sample_fmt', 's32', '-compression_level', '5']],
  ['flac', 8000, 8, ['-c:a', 'flac', '-lpc_type', 'none', '-compression_level', '0']],
  ['vorbis', 16000, 1, ['-c:a', 'libvorbis', '-q:a', '0', '-f', 'ogg']],
  ['vorbis', 44100, 2, ['-c:a', 'libvorbis', '-q:a', '3', '-f', 'ogg']],
];

for (const target of TARGETS) {
  const folder = join(CORPUS, target);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder).filter((file) => /^(made|encoded)-/.test(file)))
    rmSync(join(folder, name));
  execFileSync(PROGRAM, [`--target=${target}`, `--seeds=${folder}`]);
}
ENCODED.forEach(([target, rate, channels, options], i) => {
  const path = join(CORPUS, target, `encoded-${i}.${target === 'vorbis' ? 'ogg' : target}`);
  const sound = `sine=frequency=440:sample_rate=${rate}:duration=0.1`;
  const exact = ['-map_metadata', '-1', '-fflags', '+bitexact', '-flags:a', '+bitexact'];
  const input = ['-f', 'lavfi', '-i', sound, '-ac', String(channels)];
  execFileSync('ffmpeg', ['-loglevel', 'error', '-y', ...input, ...exact, ...options, path]);
  appendFileSync(path, Buffer.from([i % 4])); // how it is read: audio_targets.cpp
});
