/**
 * Files that are cut, damaged, or made to lie, to cost or to lead elsewhere come through HTTP to the real decoders.
 * Each has the outcome that it should have, in bounded time and memory, and leaves nothing behind.
 *
 * Nearly all of the time is that of starting ffmpeg. So the check tries all files of the containers that the addon reads
 * and some of the others, and the deep check tries all.
 *
 * `test/bad-files/outcomes.json` says which of several acceptable outcomes a file has; one that it does not name is
 * undecodable. ffmpeg decides many of them, so the record holds for one version of it. VOXGATE_RECORD_OUTCOMES=1 writes
 * it anew, of the files that are tried.
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
import { form, type Gateway, json, post, startGateway, toneWav, until } from '../http/harness.ts';
import { type LocalServer, listening } from '../local-server.ts';
import { baits, type Canaries } from './baits.ts';
import { lyingContainers } from './containers.ts';
import { cutFiles, damagedFiles } from './cuts.ts';
import { ANY, type BadFile, type Outcome } from './file.ts';
import { lyingFlacs } from './flac.ts';
import { lyingMp4s } from './mp4.ts';
import { lyingMpegs } from './mpeg.ts';
import { filesWithoutAudio, polyglots } from './not-audio.ts';
import { lyingWavs } from './wav-headers.ts';

/** The outcome of a file that may have several, where the record does not name it. */
const USUAL: Outcome = 'undecodable_audio';
const RECORD = new URL('./outcomes.json', import.meta.url);
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
  const named = Object.entries(recorded.outcomes).filter(([, outcome]) => outcome !== USUAL);
  const sorted = named.sort(([a], [b]) => (a < b ? -1 : 1));
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
  const usual = recorded.outcomes[file.name] ?? USUAL;
  return !isRecorded || usual === outcome ? null : `${file.name}: ${outcome}, and usually ${usual}`;
}

const ANY_DAMAGE = [...ANY];

interface Group {
  title: string;
  files: () => BadFile[];
  /** There are at least so many. */
  least: number;
  /** The addon reads them by itself, without a process for each. */
  isOwn?: boolean;
}

const GROUPS: Group[] = [
  {
    title: 'every container that is cut is read as far as it goes, or refused',
    files: cutFiles,
    least: 200,
  },
  {
    title: 'every container with random damage is read or refused',
    files: () => damagedFiles(1).map((file) => ({ ...file, expected: ANY_DAMAGE })),
    least: 35,
  },
  { title: 'a wav that lies about itself is read or refused', files: lyingWavs, least: 80, isOwn: true },
  { title: 'a FLAC that lies about itself is read or refused', files: lyingFlacs, least: 25, isOwn: true },
  {
    title: 'mp3, ADTS and tags that lie, nest or inflate are read or refused',
    files: lyingMpegs,
    least: 60,
    isOwn: true,
  },
  { title: 'an mp4 that lies about itself is read or refused', files: lyingMp4s, least: 50 },
  {
    title: 'the other containers that lie about themselves are read or refused',
    files: lyingContainers,
    least: 100,
  },
  { title: 'what holds no audio is refused', files: filesWithoutAudio, least: 100 },
  { title: 'what is two formats at once is read as one of them, or refused', files: polyglots, least: 50 },
  {
    title: 'what names other files and addresses does not reach them',
    files: () => baits(canaries),
    least: 100,
  },
];

/** One file of as many. Each container has six places where it is cut, so one of six tries it at one of them. */
const sampleOf = (files: BadFile[], oneOf: number) =>
  files.filter((_file, i) => (i + Math.floor(i / 6)) % oneOf === 0);

/** @param oneOf of as many files that need ffmpeg one is tried */
export function tryBadFiles(oneOf: number): void {
  for (const { title, files: makeFiles, least, isOwn = false } of GROUPS)
    test(title, async (t) => {
      const all = makeFiles();
      assert.ok(all.length >= least, `only ${all.length} files`);
      assert.equal(new Set(all.map(({ name }) => name)).size, all.length, 'every file has its own name');
      const files = isOwn ? all : sampleOf(all, oneOf);
      const wrong: string[] = [];
      for (const file of files) {
        const verdict = judge(file, await outcomeOf(file));
        if (verdict !== null) wrong.push(verdict);
      }
      assert.equal(wrong.join('\n'), '');
      tried += files.length;
      t.diagnostic(`${files.length} of ${all.length} files`);
    });

  test('after all of them nothing is left, nothing was visited, and a good file is transcribed', async (t) => {
    assert.ok(tried > 800 / oneOf, `only ${tried} files came through`);
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
}
