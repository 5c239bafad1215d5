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
import { KEEPS_MODELS, startGatewayProcess } from '../common/gateway.ts';
import { describeMachine, ownVersion } from '../common/machine.ts';
import { chosen, TUNING, WRITE } from '../common/options.ts';
import { findPlace } from '../common/page.ts';
import { transcribe } from '../peers/upload.ts';
import { startWyoming } from '../peers/wyoming-faster-whisper.ts';
import { type LiveClip, liveClips } from './clips.ts';
import { type LivePeer, type LiveRun, liveGateway } from './peer.ts';
import { liveTable, watchLoad, writeRuns } from './report.ts';
import { crowdReport, speakInTurns } from './sessions.ts';

const { values: options } = parseArgs({
  options: {
    delays: { type: 'string', default: 'minimal,medium' },
    /** Takes at most this many clips. */
    most: { type: 'string', default: '60' },
    tuning: TUNING,
    /** Leaves wyoming-faster-whisper out. */
    alone: { type: 'boolean', default: false },
    /** Milliseconds of the packets, of which each clip takes the next. */
    packets: { type: 'string', default: '20,40,60,100' },
    /** Opens so many sessions, speaks to one after the other, and compares nothing. */
    sessions: { type: 'string' },
    /** Transcribes files of 5 min one after the other meanwhile. */
    batch: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '3' },
    write: WRITE,
  },
});

const THREADS = 2;
const MODEL = 'multilingual-base';
const packets = options.packets.split(',').map(Number);
const delays = chosen('delays', options.delays, DELAYS);
const place = options.write ? findPlace(options.sessions === undefined ? 'live' : 'live-sessions') : null;
const clips = liveClips(Number(options.most), options.tuning);
const version = `voxgate: ${ownVersion()}, ${MODEL}, q8_0`;

await using gateway = await startGatewayProcess({ SVC_THREADS: String(THREADS), ...KEEPS_MODELS });
const report = options.sessions === undefined ? await compare() : await crowd(Number(options.sessions));
process.stdout.write(`${report}\n`);
place?.write(report);

async function compare(): Promise<string> {
  await using rates = await startErrorRates();
  await using wyoming = options.alone ? null : await startWyoming(THREADS);
  const peers = [
    ...delays.map((delay) => liveGateway(gateway, MODEL, delay)),
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
    `${describeMachine()}; ${THREADS} threads each. ${loaded}. ${[version, ...(wyoming ? [wyoming.version] : [])].join('; ')}.`,
  ].join('\n\n');
}

async function crowd(sessions: number): Promise<string> {
  const load = watchLoad(() => gateway.cpuSec());
  const spoken = await speakInTurns(gateway, clips, {
    sessions,
    model: MODEL,
    packets,
    batch: options.batch,
    delay: delays.at(-1) as Delay,
    seconds: Number(options.minutes) * 60,
  });
  return [
    crowdReport(spoken, { sessions, batch: options.batch }),
    `${describeMachine()}; ${THREADS} threads. ${load()}. ${version}.`,
  ].join('\n\n');
}

/** The same samples as a file, cut by the same rules. */
async function asFile({ file }: LiveClip): Promise<string> {
  const strategy = { type: 'server_vad', threshold: 0.5, silence_duration_ms: 500 };
  const fields = { model: MODEL, language: 'en', chunking_strategy: JSON.stringify(strategy) };
  return JSON.parse((await transcribe(gateway.base, file, fields)).body).text;
}
