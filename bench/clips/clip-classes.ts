/** Each class of clips holds what the peers are compared on. */
import { existsSync, readFileSync } from 'node:fs';
import { JFK } from '../../test/wav.ts';
import { type Clip, fileClip, publicClips } from './clips.ts';
import { hardClips, hardSentences } from './hard-clips.ts';
import { longClip } from './long-clips.ts';
import { voiceClips } from './voice-clips.ts';

export interface ClipClass {
  id: string;
  title: string;
  clips: Clip[];
  /** ISO 639 code; `auto` asks the peer to detect it. */
  language: string;
  /** ISO 639 code of the spoken language, by which the texts are compared. */
  spoken: string;
  rounds: number;
  vad?: boolean;
  /** True where the time to the first segment is of interest. */
  stream?: boolean;
  /** True where the answer has times of its segments. */
  timed?: boolean;
  /** True where the detected language is of interest. */
  detected?: boolean;
}

type Recipe = Pick<ClipClass, 'title' | 'vad' | 'stream' | 'timed'> & {
  clips: () => Clip[];
  language?: string;
  rounds?: number;
};

const LONG = { clips: () => joined('6min', 360, 3), rounds: 3, vad: true };

const RECIPES: Readonly<Record<string, Recipe>> = {
  commands: { title: 'Short commands, 2 to 5 s', clips: commands },
  sentences: { title: 'Sentences, 5 to 15 s', clips: sentences },
  'commands-timed': {
    title: 'Short commands, with the times of segments',
    clips: commands,
    timed: true,
  },
  'sentences-timed': { title: 'Sentences, with the times of segments', clips: sentences, timed: true },
  'commands-auto': { title: 'Short commands, language detected', clips: commands, language: 'auto' },
  'sentences-auto': { title: 'Sentences, language detected', clips: sentences, language: 'auto' },
  '60s': { title: '60 s, pauses of 0.5 s', clips: () => joined('60s', 60, 0.5) },
  '6min': { title: '6 min, pauses of 3 s (faster-whisper with its voice activity filter)', ...LONG },
  '6min-timed': { title: 'The same, with the times of segments', ...LONG, timed: true },
  '6min-streamed': {
    title: 'The same, streamed: voxgate then aligns every word for the times of the segments',
    ...LONG,
    stream: true,
  },
  '60min': {
    title:
      '60 min, pauses of 1 s, with the times of segments (faster-whisper with its voice activity filter)',
    clips: () => joined('60min', 3600, 1),
    rounds: 1,
    vad: true,
    timed: true,
  },
  'hard-timed': {
    title: 'Hard to hear, 2 to 15 s, in five languages, with the times of segments',
    clips: hardClips,
    timed: true,
  },
  '6min-hard-timed': {
    title: '6 min that are hard to hear, pauses of 1 s, with the times of segments',
    clips: () => longClip('6min-hard', hardSentences(), { seconds: 360, pauseSec: 1 }),
    rounds: 3,
    vad: true,
    timed: true,
  },
  voices: {
    title: 'Word error rate: 40 sentences, each by three machine voices',
    clips: voiceClips,
    rounds: 1,
  },
};

export const CLASS_IDS = Object.keys(RECIPES);

/** Those of the classes whose clips can be had. @param rounds of each class, in place of its own */
export function clipClasses(ids: readonly string[], rounds?: number): ClipClass[] {
  return Object.entries(RECIPES)
    .filter(([id]) => ids.includes(id))
    .map(([id, { clips, ...recipe }]) => ({
      ...{ id, clips: clips(), language: 'en', spoken: 'en' },
      ...recipe,
      rounds: rounds ?? recipe.rounds ?? 5,
    }))
    .filter(({ clips }) => clips.length > 0);
}

/** A class of one file. @param reference its text, or the name of a file that holds it */
export function fileClass(
  audio: string,
  reference: string | undefined,
  language: string,
  rounds = 5,
): ClipClass {
  const spoken = language === 'auto' ? 'en' : language;
  const clips = [fileClip(audio, referenceText(audio, reference))];
  return { id: 'audio', title: 'The given file', clips, language, spoken, rounds };
}

function referenceText(audio: string, given: string | undefined): string | null {
  if (given !== undefined) return existsSync(given) ? readFileSync(given, 'utf8') : given;
  return audio === JFK ? (publicClips()[0]?.text ?? null) : null;
}

const short = () => publicClips().filter(({ seconds }) => seconds >= 2 && seconds <= 15);

function commands(): Clip[] {
  return short().filter(({ seconds }) => seconds <= 5);
}

function sentences(): Clip[] {
  return short().filter(({ seconds }) => seconds > 5);
}

const joined = (name: string, seconds: number, pauseSec: number) =>
  longClip(name, short(), { seconds, pauseSec });
