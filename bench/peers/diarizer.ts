/** Defines what `npm run bench -- speakers` asks of every program that tells speakers apart. */
import type { SpeakerSpan } from '../speakers/conversations/reference.ts';
import type { TimedWord } from './peer.ts';

export interface Diarized {
  turns: SpeakerSpan[];
  /** NaN where an earlier run wrote the turns down. For the gateway it is what `diarize` adds to a request. */
  wallMs: number;
  /** User and system time, of all threads. */
  cpuSec: number;
  /** Absent for programs that do not recognize words. */
  words?: TimedWord[];
}

export interface Diarizer extends AsyncDisposable {
  name: string;
  /** Names everything that decides about the turns: versions, weights. */
  version: string;
  diarize(audio: string): Promise<Diarized>;
  /** Peak resident set of its process (VmHWM), MiB. */
  peakMegabytes(): number;
}

export interface DiarizerOptions {
  threads: number;
  venv: string;
  /** voxgate's model id. */
  gatewayModel: string;
  /** Address of a running voxgate; one is started when absent. */
  url?: string | undefined;
}

export type StartDiarizer = (options: DiarizerOptions) => Promise<Diarizer>;
