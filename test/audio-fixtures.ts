/** Makes audio on the spot with the machine's ffmpeg, and measures the decoded samples for the tests. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Ffmpeg, findFfmpeg } from '../src/audio/ffmpeg-process.ts';
import { type OpenAudioOptions, openAudio } from '../src/audio/open.ts';
import { sniffFile } from '../src/audio/sniff-file.ts';
import { type NativeAudioFile, NativeError } from '../src/engine/types.ts';
import { GatewayError } from '../src/errors.ts';
import { until } from './until.ts';

export const RATE = 16_000;
export const folder = mkdtempSync(join(tmpdir(), 'voxgate-audio-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

export async function requireFfmpeg(): Promise<Ffmpeg> {
  const { ffmpeg } = await findFfmpeg(process.env.PATH ?? '');
  assert.ok(ffmpeg, 'these tests need ffmpeg (on Debian: apt-get install ffmpeg)');
  return ffmpeg;
}

export function runFfmpeg(...args: string[]): Buffer {
  return execFileSync('ffmpeg', ['-v', 'error', '-y', '-nostdin', ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 2 ** 28,
  });
}

export const TONE = 'sine=frequency=440:sample_rate=48000:duration=2,volume=4dB';

/** Makes a file with 2 s of 440 Hz in every channel; its name says nothing about its content. */
export function makeTone(name: string, ...encoding: string[]): string {
  const path = join(folder, name);
  runFfmpeg('-f', 'lavfi', '-i', TONE, '-filter_threads', '1', ...encoding, path);
  return path;
}

/** Makes such a file of each encoding. One process writes all of them, because its start takes longer than a file. */
export function makeTones(encodings: readonly Encoding[], ...further: string[]): Map<string, string> {
  const outputs = encodings.flatMap(([name, , ...args]) => [...args, ...further, join(folder, name)]);
  runFfmpeg('-f', 'lavfi', '-i', TONE, '-filter_threads', '1', ...outputs);
  return new Map(encodings.map(([name]) => [name, join(folder, name)]));
}

/** The tone is at full level on both sides, because `-ac 2` would take 3 dB off. */
const STEREO = ['-af', 'pan=stereo|c0=c0|c1=c0'];

export type Encoding = [name: string, format: string, ...args: string[]];

/** The addon reads these by itself. */
export const OWN_FORMATS: readonly Encoding[] = [
  ['u8.wav', 'wav', '-c:a', 'pcm_u8', '-ar', '8000'],
  ['s16.wav', 'wav', '-c:a', 'pcm_s16le', '-ar', '44100', ...STEREO],
  ['s24.wav', 'wav', '-c:a', 'pcm_s24le', '-ar', '96000', ...STEREO],
  ['s32.wav', 'wav', '-c:a', 'pcm_s32le', '-ar', '22050'],
  ['f32.wav', 'wav', '-c:a', 'pcm_f32le', '-ar', '48000'],
  ['f64.wav', 'wav', '-c:a', 'pcm_f64le', '-ar', '11025'],
  ['mulaw.wav', 'wav', '-c:a', 'pcm_mulaw', '-ar', '8000'],
  ['adpcm.wav', 'wav', '-c:a', 'adpcm_ms', '-ar', '16000'],
  ['ima.wav', 'wav', '-c:a', 'adpcm_ima_wav', '-ar', '32000'],
  ['rf64.wav', 'wav', '-rf64', 'always'],
  ['a.w64', 'w64', '-c:a', 'pcm_s16le'],
  ['surround.wav', 'wav', '-af', 'pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0'],
  ['a.mp3', 'mp3', '-c:a', 'libmp3lame', '-ar', '44100', ...STEREO],
  ['low.mp3', 'mp3', '-c:a', 'libmp3lame', '-ar', '8000', '-b:a', '16k', '-id3v2_version', '0'],
  ['a.flac', 'flac', '-c:a', 'flac', ...STEREO],
  ['a.ogg', 'ogg vorbis', '-c:a', 'libvorbis', ...STEREO, '-page_duration', '200000'],
];

/** The addon leaves these to ffmpeg, two of them in a container that it knows. */
export const FFMPEG_FORMATS: readonly Encoding[] = [
  ['mp3inwav', 'wav', '-c:a', 'libmp3lame', '-f', 'wav'],
  ['opus.ogg', 'ogg', '-c:a', 'libopus'],
  ['speex.ogg', 'ogg', '-c:a', 'libspeex', '-ar', '16000'],
  ['flac.ogg', 'ogg', '-c:a', 'flac'],
  ['a.m4a', 'mp4', '-c:a', 'aac', '-b:a', '128k'],
  ['fast.m4a', 'mp4', '-c:a', 'aac', '-movflags', '+faststart'],
  ['fragments.mp4', 'mp4', '-c:a', 'aac', '-movflags', 'frag_keyframe+empty_moov'],
  ['alac.m4a', 'mp4', '-c:a', 'alac'],
  ['a.mov', 'mp4', '-c:a', 'pcm_s16be'],
  ['a.webm', 'webm', '-c:a', 'libopus', ...STEREO],
  ['a.mka', 'webm', '-c:a', 'libvorbis'],
  ['a.aiff', 'aiff', '-c:a', 'pcm_s16be', ...STEREO],
  ['a.aac', 'aac', '-c:a', 'aac', '-b:a', '128k'],
  ['a.caf', 'caf', '-c:a', 'pcm_s16le'],
  ['a.au', 'au', '-c:a', 'pcm_s16be'],
  ['a.wma', 'asf', '-c:a', 'wmav2'],
  ['a.ts', 'mpeg ts', '-c:a', 'aac'],
  ['a.flv', 'flv', '-c:a', 'aac', '-ar', '44100'],
  ['a.mpg', 'mpeg ps', '-c:a', 'mp2', '-f', 'mpeg'],
  ['a.avi', 'avi', '-c:a', 'libmp3lame'],
  ['a.m2ts', 'mpeg ts', '-c:a', 'ac3', '-b:a', '192k'],
  ['a.ac3', 'ac3', '-c:a', 'ac3', '-b:a', '192k'],
  ['a.eac3', 'eac3', '-c:a', 'eac3', '-b:a', '192k'],
  ['a.dts', 'dts', '-c:a', 'dca', '-strict', '-2', '-b:a', '768k', '-ac', '2', ...STEREO],
  ['a.wv', 'wavpack', '-c:a', 'wavpack'],
  ['a.tta', 'tta', '-c:a', 'tta'],
  ['a.voc', 'voc', '-c:a', 'pcm_u8', '-ar', '8000'],
];

export function write(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** This engine reads no file, so every file goes to ffmpeg. */
export const refusingEngine = {
  openAudio: async (): Promise<never> => {
    throw new NativeError('bad_audio', 'left to ffmpeg');
  },
};

export interface FakeEngine {
  openAudio(path: string): Promise<NativeAudioFile>;
  opened: number;
  closed: number;
}

/** Reads only what `wav` writes at 16 kHz; `failAtRead` (from 1) makes that read fail. */
export function createFakeEngine(options: { failAtRead?: number; error?: Error } = {}): FakeEngine {
  const engine: FakeEngine = {
    opened: 0,
    closed: 0,
    async openAudio(path) {
      const bytes = readFileSync(path);
      if (
        bytes.toString('latin1', 8, 16) !== 'WAVEfmt ' ||
        bytes.readUInt16LE(20) !== 1 ||
        bytes.readUInt32LE(24) !== RATE
      ) {
        throw new NativeError('bad_audio', 'not a wav that this fake reads');
      }
      const declared = bytes.readUInt32LE(40);
      const total = Math.min(declared, bytes.length - 44) >> 1;
      const durationSec = declared > 2 * bytes.length ? null : declared / 2 / RATE;
      let [at, reads] = [0, 0];
      engine.opened += 1;
      return {
        info: { sampleRate: RATE, channels: 1, durationSec },
        lost: [],
        sides: null,
        async read(maxSamples) {
          reads += 1;
          await new Promise((resolve) => setImmediate(resolve));
          if (reads === options.failAtRead) throw options.error ?? new NativeError('bad_audio', 'damaged');
          if (at >= total) return null;
          const block = new Float32Array(Math.min(maxSamples, total - at));
          for (let i = 0; i < block.length; i += 1, at += 1)
            block[i] = bytes.readInt16LE(44 + 2 * at) / 32768;
          return block;
        },
        close() {
          engine.closed += 1;
        },
      };
    },
  };
  return engine;
}

export async function collect(path: string, options: OpenAudioOptions) {
  await using source = await openAudio(path, options);
  const blocks: Float32Array[] = [];
  for await (const block of source.blocks()) blocks.push(block);
  const samples = new Float32Array(blocks.reduce((sum, block) => sum + block.length, 0));
  let at = 0;
  for (const block of blocks) {
    samples.set(block, at);
    at += block.length;
  }
  const { durationSec, track, lost = [] } = source;
  const { name: format } = await sniffFile(path, undefined);
  return { samples, blocks, format, durationSec, track, lost };
}

/** Measures level and pitch in the middle of the audio, where no codec's run-in or run-out reaches. */
export function measure(samples: Float32Array): { hertz: number; decibel: number } {
  const middle = samples.subarray(RATE / 4, samples.length - RATE / 4);
  let [crossings, power] = [0, 0];
  for (let i = 1; i < middle.length; i += 1) {
    const [before, now] = [middle[i - 1] ?? 0, middle[i] ?? 0];
    if (before < 0 && now >= 0) crossings += 1;
    power += now * now;
  }
  return {
    hertz: (crossings * RATE) / middle.length,
    decibel: 10 * Math.log10(power / middle.length),
  };
}

/**
 * Checks, for `assert.rejects`, that the error is a 400 about the file, with this code, and shows nothing of the
 * machine.
 */
export function refusal(...codes: string[]): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof GatewayError, `not a refusal: ${error}`);
    assert.deepEqual([error.status, error.param], [400, 'file']);
    assert.ok(codes.includes(error.code ?? ''), `${error.code}: ${error.message}`);
    assert.doesNotMatch(error.message, /\/tmp|voxgate-audio|0x|file:/);
    return true;
  };
}

/** Waits until everything is closed that was not open when `before` was counted. */
export async function untilClosed(before: ReturnType<typeof openHandles>): Promise<void> {
  await until('files and processes are closed', () => {
    const now = openHandles();
    return now.files <= before.files && now.children <= before.children;
  });
}

/** Counts the things that must be back at their numbers when all sources are closed. */
export function openHandles(): { files: number; children: number } {
  const files = readdirSync('/proc/self/fd').length;
  const children = readdirSync('/proc/self/task').flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
  );
  return { files, children: children.length };
}
