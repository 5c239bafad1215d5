/** Each limit of ffmpeg bites: processor time, the clock, memory, files, what it writes, and what it may open. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openFfmpegDecoder } from '../../src/audio/ffmpeg.ts';
import { type Ffmpeg, ffmpegCommand, findFfmpeg } from '../../src/audio/ffmpeg-process.ts';
import { type OpenAudioOptions, openAudio } from '../../src/audio/open.ts';
import { createAudioOpener } from '../../src/audio/opener.ts';
import {
  collect,
  folder,
  makeTone,
  openHandles,
  refusal,
  refusingEngine,
  requireFfmpeg,
  write,
} from '../audio-fixtures.ts';
import { silentFlac } from '../bad-files/flac.ts';
import { listening } from '../local-server.ts';

const real = await requireFfmpeg();
const run = promisify(execFile);
const tone = makeTone('limits.m4a', '-c:a', 'aac');
const NONE_MS = 3_600_000;

/** Stands in for ffmpeg, under the same limits. */
function script(name: string, body: string, limits: Partial<Ffmpeg['limits']> = {}): Ffmpeg {
  const path = write(name, `#!/bin/bash\n${body}\n`);
  chmodSync(path, 0o755);
  return { path, version: 'script', limits: { ...real.limits, ...limits } };
}

const options = (ffmpeg: Ffmpeg, more: Partial<OpenAudioOptions> = {}): OpenAudioOptions => ({
  ...{ engine: refusingEngine, ffmpeg, maxAudioSec: 60, blockSamples: 512 },
  ...more,
});
const tooMuch = (error: unknown) => {
  assert.match(String(error), /more memory or time than is allowed/);
  return refusal('undecodable_audio')(error);
};

test('an ffmpeg that uses up its processor time is ended, and its audio does not pass for the whole', async () => {
  const busy = script('busy', 'head -c 80000 /dev/zero; while :; do :; done', {
    ...{ cpuMs: 1000, wallMs: NONE_MS, audioSecPerSec: Number.POSITIVE_INFINITY },
  });
  await assert.rejects(collect(tone, options(busy)), tooMuch);
});

test('100 h of silence in 1.3 MB use up the processor time of the real ffmpeg', async () => {
  const limits = { cpuMs: 1000, wallMs: NONE_MS, audioSecPerSec: Number.POSITIVE_INFINITY };
  const ffmpeg = { ...real, limits: { ...real.limits, ...limits } };
  const bomb = write('bomb.flac', silentFlac(100, 0));
  const read = async () => {
    await using source = await openAudio(bomb, options(ffmpeg, { maxAudioSec: 1e6, blockSamples: 256_000 }));
    for await (const block of source.blocks()) assert.ok(block.length > 0);
  };
  await assert.rejects(read(), tooMuch);
});

test('an ffmpeg that does nothing is ended when the gateway has waited for it long enough', async () => {
  const before = openHandles();
  const limits = { wallMs: 300, audioSecPerSec: Number.POSITIVE_INFINITY };
  await assert.rejects(openAudio(tone, options(script('stuck', 'exec sleep 600', limits))), tooMuch);
  const late = script('late', 'head -c 80000 /dev/zero; exec sleep 600', limits);
  await assert.rejects(collect(tone, options(late)), tooMuch);
  assert.equal(openHandles().children, before.children);
});

test('the time in which nothing is read from ffmpeg does not count', async () => {
  const limits = { wallMs: 1000, audioSecPerSec: Number.POSITIVE_INFINITY };
  const prompt = script('prompt', 'exec head -c 80000 /dev/zero', limits);
  await using source = await openAudio(tone, options(prompt));
  await sleep(1500);
  let samples = 0;
  for await (const block of source.blocks()) samples += block.length;
  assert.equal(samples, 10_000); // of two floats each
});

test('longer audio has more time', async () => {
  const half = 'head -c 64000 /dev/zero; sleep 0.4;';
  const limits = { wallMs: 1000, audioSecPerSec: 2 };
  assert.equal(
    (await collect(tone, options(script('steady', half.repeat(4), limits)))).samples.length,
    32_000,
  );
});

test('an ffmpeg that asks for more memory than it may have gets none', async () => {
  const ask = 'head -c 400000000 /dev/zero | tail -c 300000000 | wc -c';
  const count = async (addressSpaceBytes: number) => {
    const [command, args] = ffmpegCommand(script('greedy', ask, { addressSpaceBytes }), [], 60_000);
    return Number((await run(command, args)).stdout);
  };
  assert.equal(await count(1024 ** 3), 300_000_000);
  assert.equal(await count(128 * 1024 ** 2), 0);
});

test('an ffmpeg that opens many files is refused the 33rd', async () => {
  const body = 'for i in {3..60}; do eval "exec $i</dev/null" || break; done; echo $i';
  const reached = async (openFiles: number) => {
    const [command, args] = ffmpegCommand(script('opener', body, { openFiles }), [], 60_000);
    return Number((await run(command, args)).stdout);
  };
  assert.equal(await reached(64), 60);
  // The shell opens each file as another number first, so the last number that it reaches depends on the shell.
  const last = await reached(real.limits.openFiles);
  assert.ok(last > 24 && last <= 32, `${last}`);
});

test('an ffmpeg that writes to a file is ended before the first byte', async () => {
  const path = join(folder, 'written');
  const [command, args] = ffmpegCommand(script('writer', `echo hello > ${path}; echo survived`), [], 60_000);
  const stdout = await run(command, args).then(
    (done) => done.stdout,
    (error) => error.stdout,
  );
  assert.equal(existsSync(path) ? readFileSync(path, 'utf8') : '', '');
  assert.equal(stdout.includes('hello'), false);
});

test('an ffmpeg that gives audio without end is too long for the gateway', async () => {
  // The packets of the file, which are counted, have an end.
  const endless = script('endless', '[[ "$*" == *copy* ]] || exec cat /dev/zero');
  await assert.rejects(collect(tone, options(endless)), refusal('audio_too_long'));
});

test('ffmpeg opens no address and no second file, even where a playlist is read as one', async () => {
  let visits = 0;
  const server = createServer((_request, response) => {
    visits += 1;
    response.end();
  });
  await using local = await listening(server);
  const url = `${local.base}/a.ts`;
  const hls = (place: string) => `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n${place}\n#EXT-X-ENDLIST\n`;
  const sound = makeTone('sound.ts', '-c:a', 'aac');
  const rows = [
    ['hls', hls(url)],
    ['hls', hls(sound)],
    ['concat', `ffconcat version 1.0\nfile '${url}'\n`],
    ['concat', `ffconcat version 1.0\nfile '${sound}'\n`],
  ] as const;
  for (const [demuxer, text] of rows) {
    const path = write('playlist', text);
    const container = { name: demuxer, demuxer, native: null };
    const decoder = await openFfmpegDecoder(path, container, real, { maxAudioSec: 60, blockSamples: 512 });
    await assert.rejects(decoder.read(), refusal('undecodable_audio', 'no_audio_stream', 'empty_audio'));
    await decoder.close();
  }
  assert.equal(visits, 0);
  const open = ['-protocol_whitelist', 'file,http,tcp', '-f', 'hls', '-i', write('playlist', hls(url))];
  await run(real.path, ['-nostdin', ...open, '-f', 'null', '-'], { timeout: 30_000 }).catch(() => {});
  assert.ok(visits > 0, 'ffmpeg without the limit does visit it');
});

test('ffmpeg is found where it is, and not where it is not', async () => {
  assert.match(real.version, /^\w/);
  for (const searchPath of ['', folder]) {
    const { ffmpeg, problem } = await findFfmpeg(searchPath);
    assert.deepEqual([ffmpeg, problem], [null, 'there is no ffmpeg in PATH']);
  }
  const relative = await findFfmpeg(`relative:${dirname(real.path)}`);
  assert.equal(relative.ffmpeg?.path, real.path);
  const broken = script('ffmpeg', 'exit 1');
  assert.match((await findFfmpeg(dirname(broken.path))).problem ?? '', /does not run$/);
});

/** No system lets a process open this many files, and so none sets the limit. */
const impossible = { ...real.limits, openFiles: 2 ** 31 };

test('an ffmpeg that cannot be limited is not used', async () => {
  const searchPath = dirname(real.path);
  const { ffmpeg, problem } = await findFfmpeg(searchPath, impossible);
  assert.equal(ffmpeg, null);
  assert.match(problem ?? '', /cannot be limited here by the ulimit of \/bin\/sh$/);
  const audio = createAudioOpener({
    engine: refusingEngine,
    searchPath,
    maxAudioSec: 60,
    limits: impossible,
  });
  assert.match((await audio.problem()) ?? '', /^m4a, .* are refused, because \/.*ffmpeg cannot be limited/);
  await assert.rejects(audio.open(tone, new AbortController().signal), (error: Error) => {
    assert.match(error.message, /mp4 needs ffmpeg, which this server does not have or may not use/);
    return refusal('unsupported_format')(error);
  });
  await assert.rejects(openAudio(tone, options({ ...real, limits: impossible })), /cannot be started/);
});
