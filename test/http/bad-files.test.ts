/**
 * Files that are cut, damaged, or made to lie, to cost or to lead elsewhere come through HTTP to the real decoders.
 * Each has the outcome that it should have, in bounded time and memory, and leaves nothing behind.
 *
 * `test/bad-files/outcomes.json` says which of several acceptable outcomes each file has. ffmpeg decides many of them,
 * so the record holds for one version of it. VOXGATE_RECORD_OUTCOMES=1 writes it anew.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { constants, readFileSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { errorEnvelopeSchema } from '../../src/http/openapi/openapi.ts';
import { folder, makeTone, openHandles, requireFfmpeg, write } from '../audio-fixtures.ts';
import { baits, type Canaries } from '../bad-files/baits.ts';
import { lyingContainers } from '../bad-files/containers.ts';
import { cutFiles, damagedFiles } from '../bad-files/cuts.ts';
import { ANY, type BadFile, type Outcome } from '../bad-files/file.ts';
import { lyingFlacs } from '../bad-files/flac.ts';
import { lyingMp4s } from '../bad-files/mp4.ts';
import { lyingMpegs } from '../bad-files/mpeg.ts';
import { filesWithoutAudio, polyglots } from '../bad-files/not-audio.ts';
import { lyingWavs } from '../bad-files/wav-headers.ts';
import { type LocalServer, listening } from '../local-server.ts';
import { form, type Gateway, json, post, startGateway, toneWav, until } from './harness.ts';

const RECORD = new URL('../bad-files/outcomes.json', import.meta.url);
const recorded: { ffmpeg: string; outcomes: Record<string, Outcome> } = JSON.parse(
  readFileSync(RECORD, 'utf8'),
);
const { version } = await requireFfmpeg();
const isRecorded = version.startsWith(recorded.ffmpeg);
const isRecording = process.env.VOXGATE_RECORD_OUTCOMES === '1';

const MAX_AUDIO_SEC = 60;
/** No file takes a second. The rest is for a machine that does other things too. */
const MAX_MS = 20_000;
/** What the process, which is also the client, may grow by in all requests together; the largest file has 16 MiB. */
const MAX_GROWN_KB = 200 * 1024;

let gateway: Gateway;
let canaries: Canaries;
let visits = 0;
let tried = 0;
let grownKb = 0;
let handles = openHandles();
let bait: LocalServer;
const listener = createServer((socket) => {
  visits += 1;
  socket.destroy();
});
let pipeOpened: Promise<unknown>;

/** Opening a pipe to write waits until somebody opens it to read, so this counts a decoder that does. */
async function watchPipe(): Promise<void> {
  const writer = await open(canaries.pipe, 'w');
  visits += 1;
  await writer.close();
}

/** ffmpeg without the guards of the gateway follows the baits, so the canaries do tell. */
async function seeCanariesTell(): Promise<void> {
  const followed = promisify(execFile);
  const script = write('bait.ffconcat', `ffconcat version 1.0\nfile '${canaries.pipe}'\n`);
  const playlist = write('bait.m3u8', `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n${canaries.url}\n`);
  for (const input of [
    ['-f', 'concat', '-safe', '0', '-i', script],
    ['-protocol_whitelist', 'file,http,tcp', '-f', 'hls', '-i', playlist],
  ]) {
    const before = visits;
    await followed('ffmpeg', ['-nostdin', ...input, '-f', 'null', '-'], { timeout: 30_000 }).catch(() => {});
    assert.ok(visits > before, `ffmpeg did not follow ${input.join(' ')}`);
  }
  visits = 0;
}

before(async () => {
  bait = await listening(listener);
  const pipe = join(folder, 'pipe.wav');
  execFileSync('mkfifo', [pipe]);
  canaries = { file: makeTone('secret.ts', '-c:a', 'aac'), pipe, url: `${bait.base}/a.ts` };
  gateway = await startGateway({
    env: { SVC_MAX_AUDIO_SEC: String(MAX_AUDIO_SEC), PATH: process.env.PATH ?? '' },
  });
  assert.equal((await post(gateway, form(toneWav(1)))).status, 200);
  pipeOpened = watchPipe();
  await seeCanariesTell();
  pipeOpened = watchPipe();
  handles = openHandles();
});

after(async () => {
  await gateway[Symbol.asyncDispose]();
  await bait?.[Symbol.asyncDispose]();
  const reader = await open(canaries.pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  await pipeOpened;
  await reader.close();
  if (!isRecording) return;
  const sorted = Object.entries(recorded.outcomes).sort(([a], [b]) => (a < b ? -1 : 1));
  const [major, minor] = version.split('.');
  const record = { ffmpeg: `${major}.${minor}`, outcomes: Object.fromEntries(sorted) };
  writeFileSync(RECORD, `${JSON.stringify(record, null, 2)}\n`);
});

/** Posts a file, and gives what came of it. */
async function outcomeOf(file: BadFile): Promise<Outcome> {
  const startedAt = performance.now();
  const peakKb = process.resourceUsage().maxRSS;
  const body = form(file.bytes, { response_format: 'verbose_json' }, file.sentAs ?? 'speech');
  const response = await post(gateway, body);
  const answer = await json(response);
  const tookMs = performance.now() - startedAt;
  grownKb += process.resourceUsage().maxRSS - peakKb;
  assert.ok(tookMs < MAX_MS, `${file.name} took ${tookMs} ms`);
  if (response.status === 200) {
    assert.ok(
      answer.duration <= (file.maxSec ?? MAX_AUDIO_SEC + 1),
      `${file.name}: ${answer.duration} s of audio`,
    );
    return answer.text === '' ? 'silence' : 'speech';
  }
  const { error } = errorEnvelopeSchema.parse(answer);
  assert.deepEqual([response.status, error.kind], [400, 'malformed'], file.name);
  if (error.code !== 'invalid_form') assert.equal(error.param, 'file', file.name);
  assert.doesNotMatch(error.message, /\/tmp|voxgate-|0x|file:|http:/, file.name);
  return error.code as Outcome;
}

/** Says what is wrong with an outcome; null if it is the right one. */
function judge(file: BadFile, outcome: Outcome): string | null {
  const acceptable = [file.expected].flat();
  if (!acceptable.includes(outcome)) {
    const tolerable = !isRecorded && ANY.includes(outcome);
    return tolerable ? null : `${file.name}: ${outcome}, not ${acceptable.join(' or ')}`;
  }
  if (acceptable.length === 1 || file.expected === ANY_DAMAGE) return null;
  if (isRecording) recorded.outcomes[file.name] = outcome;
  const usual = recorded.outcomes[file.name];
  return !isRecorded || usual === outcome ? null : `${file.name}: ${outcome}, and usually ${usual}`;
}

const ANY_DAMAGE = [...ANY];

const GROUPS: [title: string, files: () => BadFile[], least: number][] = [
  ['every container that is cut is read as far as it goes, or refused', cutFiles, 200],
  [
    'every container with random damage is read or refused',
    () => damagedFiles(1).map((file) => ({ ...file, expected: ANY_DAMAGE })),
    35,
  ],
  ['a wav that lies about itself is read or refused', lyingWavs, 80],
  ['a FLAC that lies about itself is read or refused', lyingFlacs, 25],
  ['mp3, ADTS and tags that lie, nest or inflate are read or refused', lyingMpegs, 60],
  ['an mp4 that lies about itself is read or refused', lyingMp4s, 50],
  ['the other containers that lie about themselves are read or refused', lyingContainers, 100],
  ['what holds no audio is refused', filesWithoutAudio, 100],
  ['what is two formats at once is read as one of them, or refused', polyglots, 50],
  ['what names other files and addresses does not reach them', () => baits(canaries), 100],
];

for (const [title, makeFiles, least] of GROUPS) {
  test(title, async (t) => {
    const files = makeFiles();
    assert.ok(files.length >= least, `only ${files.length} files`);
    assert.equal(new Set(files.map(({ name }) => name)).size, files.length, 'every file has its own name');
    const wrong: string[] = [];
    for (const file of files) {
      const verdict = judge(file, await outcomeOf(file));
      if (verdict !== null) wrong.push(verdict);
    }
    assert.equal(wrong.join('\n'), '');
    tried += files.length;
    t.diagnostic(`${files.length} files`);
  });
}

test('after all of them nothing is left, nothing was visited, and a good file is transcribed', async (t) => {
  assert.ok(tried > 800, `only ${tried} files came through`);
  assert.equal(visits, 0, 'a decoder opened another file or an address');
  assert.equal((await json(await post(gateway, form(toneWav(1))))).text, 'Hello there.');
  await until('no upload is left', () => gateway.uploads().length === 0);
  assert.equal(gateway.app.slot.status().holder, null);
  // The connections of this client come and go.
  await until('files and processes are closed', () => {
    const { files, children } = openHandles();
    return children === handles.children && files <= handles.files + 4;
  });
  t.diagnostic(`${tried} files, and ${Math.round(grownKb / 1024)} MiB more memory`);
  assert.ok(grownKb < MAX_GROWN_KB, `${grownKb} kB more`);
  if (!isRecorded) t.diagnostic(`outcomes are those of ffmpeg ${recorded.ffmpeg}; here is ${version}`);
});
