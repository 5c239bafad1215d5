/** Sends one class of clips through all peers in turns. */
import type { ClipClass } from '../clips/clip-classes.ts';
import type { Clip } from '../clips/clips.ts';
import type { Peer, PeerOptions, Run, StartPeer } from '../peers/peer.ts';

export interface Measured {
  clip: Clip;
  round: number;
  run: Run;
}

/** The result of one peer in one class. */
export interface Outcome {
  id: string;
  name: string;
  version: string;
  runs: Measured[];
  /** Processor time of one pass over all clips of the class. */
  cpuSecPerPass: number;
  peakMegabytes: number;
  /** Says why the peer was left out, or ended before the others. */
  failure: string | null;
}

interface Contender {
  outcome: Outcome;
  peer: Peer;
}

const WARM_UP_LIMIT_SEC = 30;
const WARM_UP_CLIPS = 6;

/** Starts the processes again for each class, so that a peak of memory belongs to that class. */
export async function measure(
  clipClass: ClipClass,
  peers: [string, StartPeer][],
  options: PeerOptions,
  warmUp: Clip,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const contenders: Contender[] = [];
  try {
    for (const [id, start] of peers) {
      const unknown = { cpuSecPerPass: Number.NaN, peakMegabytes: Number.NaN };
      const outcome: Outcome = { id, name: id, version: '', runs: [], ...unknown, failure: null };
      outcomes.push(outcome);
      await orFailure(outcome, async () => {
        const peer = await start(options);
        Object.assign(outcome, { name: peer.name, version: peer.version });
        contenders.push({ outcome, peer });
      });
    }
    // The warm-up loads weights and fills caches; a long recording would add nothing to a short one.
    const warming = clipClass.clips
      .filter(({ seconds }) => seconds <= WARM_UP_LIMIT_SEC)
      .slice(0, WARM_UP_CLIPS);
    for (const clip of warming.length > 0 ? warming : [warmUp]) {
      for (const contender of contenders) await transcribe(contender, clipClass, clip);
    }
    await takeTurns(clipClass, contenders);
  } finally {
    for (const { peer } of contenders) await peer[Symbol.asyncDispose]();
  }
  return outcomes;
}

async function takeTurns(clipClass: ClipClass, contenders: Contender[]): Promise<void> {
  const cpuBefore = contenders.map(({ peer }) => peer.cpuSec());
  let turn = 0;
  for (let round = 0; round < clipClass.rounds; round += 1) {
    process.stderr.write(`${clipClass.title}: round ${round + 1} of ${clipClass.rounds}\n`);
    for (const clip of clipClass.clips) {
      const order = turn % 2 === 0 ? contenders : contenders.toReversed();
      turn += 1;
      for (const contender of order) {
        const run = await transcribe(contender, clipClass, clip);
        if (run !== undefined) contender.outcome.runs.push({ clip, round, run });
      }
    }
  }
  contenders.forEach(({ outcome, peer }, i) => {
    outcome.cpuSecPerPass = (peer.cpuSec() - (cpuBefore[i] ?? 0)) / clipClass.rounds;
    outcome.peakMegabytes = peer.peakMegabytes();
  });
}

/** Resolves to undefined for a peer that fails now or has failed. */
async function transcribe(
  { outcome, peer }: Contender,
  { language, vad = false, stream = false, timed = false, detected = false }: ClipClass,
  clip: Clip,
): Promise<Run | undefined> {
  if (outcome.failure !== null) return undefined;
  const task = { audio: clip.audio, language: clip.language ?? language, vad, stream, timed, detected };
  return orFailure(outcome, () => peer.transcribe(task));
}

async function orFailure<T>(outcome: Outcome, act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    outcome.failure = error instanceof Error ? error.message.trim() : String(error);
    process.stderr.write(`Without ${outcome.name}: ${outcome.failure}\n`);
    return undefined;
  }
}
