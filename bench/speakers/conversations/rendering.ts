/** Makes conversations: the sound, the turns as RTTM and the words as STM, the same at every run. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wav } from '../../../test/wav.ts';
import { mixed } from '../../clips/degraded-clips.ts';
import { ROOT } from '../../common/machine.ts';
import { type Random, seededRandom, seedOf, shuffled } from '../../common/random.ts';
import { addAt, RATE } from '../../common/samples.ts';
import { NOISES } from '../../silence/noises.ts';
import { inPlace } from './places.ts';
import { planned, spansOf, type Turn } from './plan.ts';
import { type Voice, voices } from './recorded-voices.ts';
import { rttmLines, stmLines } from './reference.ts';
import { type Spoken, speaking, type Wording } from './saying.ts';
import type { Conversation } from './set.ts';
import type { Span } from './speech-spans.ts';

export const CONVERSATION_FOLDER = join(ROOT, 'build/conversations');

export interface ConversationFiles {
  /** 16 kHz mono wav. */
  audio: string;
  rttm: string;
  /** Null where not all words are known. */
  stm: string | null;
}

/** Raise it with each change of how the files sound, so that old ones are not taken for new ones. */
const VERSION = 2;
const NOISE_KINDS = ['pink noise', 'a fan', 'a crowd without words', 'an engine', 'rain', 'wind'] as const;
const SILENT_END_SEC = 0.5;
/** Decibels by which one speaker may be softer than another. */
const LEVEL_SPREAD_DB = 6;
const ROOM_LEVEL_SPREAD_DB = 15;

/** The files, which are made at the first call. Null, with the reason printed, where too few voices can be had. */
export function conversationFiles(conversation: Conversation): ConversationFiles | null {
  const stem = join(CONVERSATION_FOLDER, conversation.name);
  const files = { audio: `${stem}.wav`, rttm: `${stem}.rttm` };
  const stm = () => (existsSync(`${stem}.stm`) ? `${stem}.stm` : null);
  const made = JSON.stringify({ VERSION, ...conversation });
  const stamp = `${stem}.json`;
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === made) return { ...files, stm: stm() };
  mkdirSync(CONVERSATION_FOLDER, { recursive: true });
  rmSync(`${stem}.stm`, { force: true });
  const random = seededRandom(seedOf(conversation.name));
  const cast = castOf(conversation, random);
  if (cast === null) return null;
  const { samples, speakers, words } = rendered(conversation, cast, random);
  writeFileSync(files.audio, wav(samples));
  writeFileSync(files.rttm, rttmLines(conversation.name, speakers));
  if (words !== null) writeFileSync(`${stem}.stm`, stmLines(conversation.name, words));
  writeFileSync(`${stamp}.part`, made);
  renameSync(`${stamp}.part`, stamp);
  return { ...files, stm: stm() };
}

export interface Rendered {
  samples: Float32Array;
  speakers: { id: string; spans: Span[] }[];
  /** Null where not all words are known. */
  words: ({ speaker: string } & Wording)[] | null;
}

/** @param random uniform values from 0 to 1, seeded */
export function rendered(
  conversation: Conversation,
  cast: readonly Pick<Voice, 'id' | 'utterances'>[],
  random: Random,
): Rendered {
  const mouths = cast.map((voice) => speaking(voice, random));
  const speak = (speaker: number, seconds: number) => (mouths[speaker] as (typeof mouths)[number])(seconds);
  const turns = planned<Spoken>(conversation, speak, random);
  const end = Math.max(0, ...turns.map(({ start, said }) => start + said.seconds)) + SILENT_END_SEC;
  const tracks = cast.map((_, speaker) => {
    const track = new Float32Array(Math.round(end * RATE));
    const gain = 10 ** ((-(conversation.room ? ROOM_LEVEL_SPREAD_DB : LEVEL_SPREAD_DB) * random()) / 20);
    for (const { start, said } of turns.filter((turn) => turn.speaker === speaker))
      addAt(track, said.samples, Math.round(start * RATE), gain);
    return track;
  });
  const heard = inPlace(tracks, conversation, random);
  const kind = NOISE_KINDS[Math.floor(random() * NOISE_KINDS.length)] ?? 'rain';
  const noise = () => NOISES[kind]?.(heard.length / RATE, random) ?? heard;
  const wordings = turns.map(({ speaker, start, said }) =>
    said.wording?.map((one) => ({
      speaker: cast[speaker]?.id ?? '',
      text: one.text,
      start: start + one.start,
      end: start + one.end,
    })),
  );
  const known = wordings.filter((one) => one !== undefined);
  return {
    samples: conversation.snrDb === null ? heard : mixed(heard, noise(), conversation.snrDb),
    speakers: cast.map(({ id }, speaker) => ({
      id,
      spans: spansOf(conversation.room ? turns.map(unbroken) : turns, speaker),
    })),
    words: known.length === wordings.length ? known.flat() : null,
  };
}

/** People who label meetings by hand count the pauses in what one says as speech. */
const unbroken = (turn: Turn<Spoken>): Turn<Spoken> => ({
  ...turn,
  said: { ...turn.said, spans: [{ start: 0, end: turn.said.seconds }] },
});

const known = new Map<boolean, Voice[]>();

/** Voices of one person are told by what they say, not by how they were recorded, so calls alone have narrow ones. */
function castOf({ speakers, tuning, telephone }: Conversation, random: Random): Voice[] | null {
  const all = known.get(tuning) ?? voices({ tuning });
  known.set(tuning, all);
  const able = all.filter(({ narrowBand }) => telephone || !narrowBand);
  const cast = shuffled(able, random).slice(0, speakers);
  if (cast.length === speakers) return cast;
  process.stderr.write(`Without conversations of ${speakers}: only ${able.length} voices can be had\n`);
  return null;
}
