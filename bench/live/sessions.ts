/** Many live sessions of which one is spoken to at a time, beside files that hold the slot again and again. */
import type { Delay } from '../../src/transcription/live/stable-text.ts';
import { at16kHz, connectLive, type LiveClient } from '../../test/http/realtime.ts';
import { wav } from '../../test/wav.ts';
import type { GatewayProcess } from '../common/gateway.ts';
import { median } from '../common/numbers.ts';
import { markdownTable } from '../common/page.ts';
import { megabytes, sleep } from '../common/processes.ts';
import { RATE } from '../common/samples.ts';
import { send, transcriptionsAt } from '../peers/upload.ts';
import { type LiveClip, SAMPLES_A_MS } from './clips.ts';
import { type LiveRun, say } from './peer.ts';
import { spread } from './report.ts';

interface Crowd {
  sessions: number;
  model: string;
  delay: Delay;
  packets: number[];
  batch: boolean;
  seconds: number;
}

export interface Spoken {
  runs: LiveRun[];
  /** Files that were transcribed meanwhile. */
  files: number;
  refusedFiles: number;
  /** Resident set of the gateway before each clip, MiB. */
  residentMb: number[];
}

const FILE_SEC = 300;

export async function speakInTurns(
  gateway: GatewayProcess,
  clips: LiveClip[],
  { sessions, model, delay, packets, batch, seconds }: Crowd,
): Promise<Spoken> {
  const clients: LiveClient[] = [];
  const said = new Map<LiveClient, number>();
  const spoken: Spoken = { runs: [], files: 0, refusedFiles: 0, residentMb: [] };
  const over = performance.now() + seconds * 1000;
  const isOver = () => performance.now() > over;
  try {
    for (let i = 0; i < sessions; i += 1) {
      const client = await connectLive(gateway);
      client.send(at16kHz({ transcription: { model, language: 'en', delay } }));
      clients.push(client);
    }
    const files = batch
      ? transcribeFiles(gateway, longFile(clips), model, spoken, isOver)
      : Promise.resolve();
    for (let i = 0; !isOver(); i += 1) {
      spoken.residentMb.push(megabytes(gateway.pid, 'VmRSS'));
      const client = clients[i % sessions] as LiveClient;
      const clip = clips[i % clips.length] as LiveClip;
      const before = said.get(client) ?? 0;
      spoken.runs.push(await say(client, clip, { packetMs: packets[i % packets.length] ?? 20, before }));
      said.set(client, before + clip.samples.length / SAMPLES_A_MS);
    }
    await files;
  } finally {
    for (const client of clients) await client[Symbol.asyncDispose]();
  }
  return spoken;
}

async function transcribeFiles(
  { base }: GatewayProcess,
  file: Buffer,
  model: string,
  spoken: Spoken,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    const { status } = await send(transcriptionsAt(base), file, { model, language: 'en' });
    if (status === 200) spoken.files += 1;
    else spoken.refusedFiles += 1;
    await sleep(200); // the pause of a client that makes the next request
  }
}

function longFile(clips: LiveClip[]): Buffer {
  const samples = new Int16Array(FILE_SEC * RATE);
  for (let at = 0, i = 0; at < samples.length; i += 1) {
    const part = (clips[i % clips.length] as LiveClip).samples.subarray(0, samples.length - at);
    samples.set(part, at);
    at += part.length;
  }
  return wav(samples);
}

export function crowdReport(
  { runs, files, refusedFiles, residentMb: mb }: Spoken,
  { sessions, batch }: Pick<Crowd, 'sessions' | 'batch'>,
): string {
  const failures = runs.flatMap((run) => run.failures);
  const codes = [...new Set(failures.map(({ code }) => code))].join(', ');
  const latest = Math.max(...failures.map(({ ms }) => ms));
  const texts = runs.flatMap(({ finalMs }) => finalMs);
  const half = Math.ceil(mb.length / 2);
  const row = [
    `${sessions} sessions${batch ? ', files of 5 min' : ''}`,
    String(texts.length),
    failures.length === 0 ? '0' : `${failures.length} (${codes}), after ${latest.toFixed(0)} ms at most`,
    spread(texts),
    batch ? `${files} (${refusedFiles} refused)` : '',
    `${median(mb.slice(0, half)).toFixed(0)}, then ${median(mb.slice(half)).toFixed(0)}`,
  ];
  const columns = ['', 'texts', 'failed', 'end of speech to text ms, p50 / p95 / longest', 'files', 'MiB'];
  return markdownTable(columns, [row]);
}
