/**
 * Measures live speech: recorded sentences are said in real time, in packets as clients send them. How soon is the text
 * there when a sentence has ended, how soon are its first words, and how many words are wrong?
 *
 *   npm run bench -- live [--delays minimal,medium --most 60 --write]
 *   npm run bench -- live --sessions 20 --batch --minutes 3
 *
 * The programs take turns from clip to clip. The second form opens many sessions, of which one is spoken to at a time.
 */
import { parseArgs } from 'node:util';
import { DELAYS, type Delay } from '../../src/transcription/live/stable-text.ts';
import { startErrorRates } from '../accuracy/error-rate.ts';
import { startGatewayProcess } from '../common/gateway.ts';
import { findPlace } from '../common/page.ts';
import { describeMachine } from '../compare/report.ts';
import { gitRevision, packageVersion, ROOT } from '../peers/peer.ts';
import { VENV } from '../peers/python.ts';
import { startWyoming } from '../peers/wyoming-faster-whisper.ts';
import { type LiveClip, liveClips } from './clips.ts';
import { watchLoad } from './other-load.ts';
import { type LivePeer, type LiveRun, liveGateway } from './peer.ts';
import { liveTable, writeRuns } from './report.ts';
import { crowdReport, speakInTurns } from './sessions.ts';

const { values: options } = parseArgs({
  options: {
    delays: { type: 'string', default: 'minimal,medium' },
    /** Takes at most this many clips. */
    most: { type: 'string', default: '60' },
    /** Takes the half of the clips on which settings may be tuned, not the one that judges them. */
    tuning: { type: 'boolean', default: false },
    /** Leaves wyoming-faster-whisper out. */
    alone: { type: 'boolean', default: false },
    /** Milliseconds of the packets, of which each clip takes the next. */
    packets: { type: 'string', default: '20,40,60,100' },
    threads: { type: 'string', default: '2' },
    'gateway-model': { type: 'string', default: 'multilingual-base' },
    venv: { type: 'string', default: VENV },
    /** Opens so many sessions, speaks to one after the other, and compares nothing. */
    sessions: { type: 'string' },
    /** Transcribes files of 5 min one after the other meanwhile. */
    batch: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '3' },
    /** Writes the table into its place in docs/performance.md. */
    write: { type: 'boolean', default: false },
  },
});

const threads = Number(options.threads);
const model = options['gateway-model'];
const packets = options.packets.split(',').map(Number);
const delays = options.delays
  .split(',')
  .map((name) => DELAYS.find((delay) => delay === name) ?? refuse(name));
const place = options.write ? findPlace(options.sessions === undefined ? 'live' : 'live-sessions') : null;
const clips = liveClips(Number(options.most), options.tuning);
const version = `voxgate: ${packageVersion(ROOT)} (${gitRevision()}), ${model}, q8_0`;

await using gateway = await startGatewayProcess({
  SVC_THREADS: String(threads),
  SVC_MODEL_KEEP_ALIVE_SEC: '-1',
});
const report = options.sessions === undefined ? await compare() : await crowd(Number(options.sessions));
process.stdout.write(`${report}\n`);
place?.write(report);

async function compare(): Promise<string> {
  await using rates = await startErrorRates(options.venv);
  await using wyoming = options.alone ? null : await startWyoming(threads, options.venv);
  const peers = [
    ...delays.map((delay) => liveGateway(gateway, model, delay)),
    ...(wyoming === null ? [] : [wyoming.peer]),
  ];
  // The gateway has not loaded its model yet; the others have.
  const cold = (await peers[0]?.hear(clips[0] as LiveClip, 20))?.finalMs.at(-1) ?? Number.NaN;
  for (const peer of peers) await peer.hear(clips[0] as LiveClip, 20);
  const load = watchLoad(() => gateway.cpuSec() + (wyoming?.cpuSec() ?? 0));
  const runs = new Map<LivePeer, LiveRun[]>(peers.map((peer) => [peer, []]));
  const files: string[] = [];
  for (const [i, clip] of clips.entries()) {
    for (const peer of i % 2 === 0 ? peers : peers.toReversed())
      runs.get(peer)?.push(await peer.hear(clip, packets[i % packets.length] ?? 20));
    files.push(await asFile(clip));
    writeRuns(clips.slice(0, i + 1), runs, files);
    process.stderr.write(`${i + 1} of ${clips.length} clips\r`);
  }
  const loaded = load();
  return [
    await liveTable(clips, runs, files, rates),
    `The first utterance after the start of the gateway, whose model is loaded meanwhile: ${cold.toFixed(0)} ms.`,
    `${describeMachine()}; ${threads} threads each. ${loaded}. ${[version, ...(wyoming ? [wyoming.version] : [])].join('; ')}.`,
  ].join('\n\n');
}

async function crowd(sessions: number): Promise<string> {
  const load = watchLoad(() => gateway.cpuSec());
  const spoken = await speakInTurns(gateway, clips, {
    sessions,
    model,
    packets,
    batch: options.batch,
    delay: delays.at(-1) as Delay,
    seconds: Number(options.minutes) * 60,
  });
  return [
    crowdReport(spoken, { sessions, batch: options.batch }),
    `${describeMachine()}; ${threads} threads. ${load()}. ${version}.`,
  ].join('\n\n');
}

/** The same samples as a file, cut by the same rules. */
async function asFile({ file, name }: LiveClip): Promise<string> {
  const form = new FormData();
  const strategy = { type: 'server_vad', threshold: 0.5, silence_duration_ms: 500 };
  const fields = { model, language: 'en', chunking_strategy: JSON.stringify(strategy) };
  for (const [field, value] of Object.entries(fields)) form.set(field, value);
  form.set('file', new Blob([Uint8Array.from(file)]), 'clip.wav');
  const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body: form });
  const { text, error } = (await response.json()) as { text: string; error?: { message: string } };
  if (error !== undefined) throw new Error(`${name}: ${error.message}`);
  return text;
}

function refuse(name: string): never {
  process.stderr.write(`--delays has ${name}, which is none of ${DELAYS.join(', ')}\n`);
  process.exit(2);
}
