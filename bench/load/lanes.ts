/**
 * Measures what the chunks of the `6min` class take on one thread and on two, and simulates from that how an hour of
 * such speech is recognized on more threads, by how many lanes a model may have.
 *
 *   npm run bench -- lanes [--minutes 6 --write]
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openAudio } from '../../src/audio/open.ts';
import { readConfig } from '../../src/config/config.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { type Chunk, DEFAULT_LIMITS, speechChunks } from '../../src/transcription/speech/chunks.ts';
import { recognizer } from '../../src/transcription/whisper/recognizer.ts';
import { chunkRequest } from '../../test/chunk-request.ts';
import { clipClasses } from '../clips/clip-classes.ts';
import { describeMachine } from '../common/machine.ts';
import { total } from '../common/numbers.ts';
import { WRITE } from '../common/options.ts';
import { findPlace, markdownTable } from '../common/page.ts';
import { ggmlBase } from '../peers/whisper-cpp.ts';
import { simulateLanes, type Work } from './lane-simulation.ts';

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '6' },
    write: WRITE,
  },
});

const LANGUAGE = 'en';
const THREADS = [1, 2, 4, 8, 16, 32];
/** The most lanes of a model. */
const LANES = [1, 2, 4, 8, 16];
const HOUR_SEC = 3600;

const place = options.write ? findPlace('lanes', 'bench/results/time.md') : null;
const { config } = readConfig();
const engine = loadNative();
const clip = clipClasses(['6min'])[0]?.clips[0];
if (clip === undefined)
  throw new Error('There are too few clips: Debian’s pocketsphinx-testdata cannot be had');

const { found, searchSec } = await search(clip.audio);
const seconds = Math.min(Number(options.minutes) * 60, clip.seconds);
const chunks = found.filter(({ startSec }) => startSec < seconds);
const alone = await recognize(chunks, 1);
const both = await recognize(chunks, 2);
const serial = Math.max(0, (2 * total(both)) / total(alone) - 1);
const work = anHour(alone, searchSec / clip.seconds, serial);
const rows = THREADS.map((threads) => [
  `${threads}`,
  ...LANES.map((lanes) => {
    if (lanes > threads) return '';
    const { speedup } = simulateLanes(work, threads, lanes);
    return `${speedup.toFixed(1)} (${Math.round((100 * speedup) / threads)} %)`;
  }),
]);
const report = [
  markdownTable(['threads', ...LANES.map((lanes) => (lanes === 1 ? '1 lane' : `${lanes} lanes`))], rows),
  `Measured: ${chunks.length} chunks of ${seconds.toFixed(0)} s of audio took ${total(alone).toFixed(1)} s on one thread and ` +
    `${total(both).toFixed(1)} s on two, so that ${Math.round(100 * serial)} % of it count as serial; finding them took ` +
    `${((searchSec * seconds) / clip.seconds).toFixed(2)} s. ${describeMachine()}.`,
].join('\n\n');
process.stdout.write(`${report}\n`);
place?.write(report);
process.exit(0);

/** The chunks of a recording, and how long it takes to read it and to find them. */
async function search(audio: string): Promise<{ found: Chunk[]; searchSec: number }> {
  const path = join(config.modelDir, 'ggml-silero-v6.2.0.bin');
  const voiceActivity = await engine.loadVoiceActivity({ path });
  await using source = await openAudio(audio, { engine, ffmpeg: null, maxAudioSec: HOUR_SEC });
  const begin = performance.now();
  const found: Chunk[] = [];
  const { signal } = new AbortController();
  const limits = { ...DEFAULT_LIMITS, ...recognizer.limits(LANGUAGE) };
  for await (const chunk of speechChunks(source.blocks(), voiceActivity, { signal, onBlock() {}, limits }))
    found.push(chunk);
  return { found, searchSec: (performance.now() - begin) / 1000 };
}

/** The seconds that each chunk takes on a lane with so many threads. */
async function recognize(heard: Chunk[], threads: number): Promise<number[]> {
  const model = await engine.loadModel({ family: 'whisper', path: ggmlBase(), device: 'cpu', threads });
  const lane = await model.lane(0);
  const request = chunkRequest({ language: LANGUAGE, beams: 5, timed: true });
  const hear = async (chunk: Chunk) => {
    const begin = performance.now();
    await recognizer.recognize(lane, chunk, request);
    return (performance.now() - begin) / 1000;
  };
  for (const chunk of heard.slice(0, 2)) await hear(chunk); // its memory is touched for the first time
  const times: number[] = [];
  for (const chunk of heard) times.push(await hear(chunk));
  await model.close();
  return times;
}

/** The same chunks again and again, found one after the other. */
function anHour(chunkSec: readonly number[], searchFactor: number, share: number): Work {
  const times = Math.max(1, Math.round(HOUR_SEC / seconds));
  const all = Array.from({ length: times }, () => chunkSec).flat();
  const stepSec = (searchFactor * HOUR_SEC) / all.length;
  return { chunks: all, foundSec: all.map((_, i) => (i + 1) * stepSec), serial: share };
}
