/** Defines what the benches ask of every peer that they compare. */
import type { MeasuredProcess } from '../common/processes.ts';

export interface Task {
  /** Path of a 16 kHz mono wav, which all of them can read. */
  audio: string;
  /** ISO 639 code; `auto` asks the peer to detect it. */
  language: string;
  /** Turns on the peer's own voice activity filter, where it has one that has to be asked for. */
  vad?: boolean;
  /** Asks for times of each segment, where that has to be asked for. */
  timed?: boolean;
  /** Asks for times of each word, where the peer gives them. */
  words?: boolean;
  /** Asks which language was detected, where `language` is `auto`. */
  detected?: boolean;
  /** Asks for a stream of segments, where that has to be asked for, so that the first can be timed. */
  stream?: boolean;
}

export interface TimedWord {
  word: string;
  /** Seconds from the start of the audio. */
  start: number;
  end: number;
}

export interface Run {
  wallMs: number;
  /** Time until the first segment; the whole time for a peer that gives all at once. */
  firstMs: number;
  text: string;
  /** The time without loading, for a peer that loads its weights in every run and says how long that took. */
  withoutLoadMs?: number;
  words?: TimedWord[];
  /** ISO 639 code of the language that was detected, where the task asks for it. */
  language?: string;
}

export interface Peer extends MeasuredProcess {
  name: string;
  /** The version names everything that decides about speed and accuracy: versions, weights, decoding. */
  version: string;
  transcribe(task: Task): Promise<Run>;
}

export type Device = 'cpu' | 'cuda';

export interface PeerOptions {
  threads: number;
  /** Where the models run, by default on the CPU. On a GPU their weights are f16. */
  device?: Device;
  /** Directory of a CTranslate2 Whisper checkpoint; base when absent. */
  model?: string | undefined;
  /** voxgate's model id. */
  gatewayModel: string;
  /** Address of a running voxgate; one is started when absent. */
  url?: string | undefined;
}

export type StartPeer = (options: PeerOptions) => Promise<Peer>;
