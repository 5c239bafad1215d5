/** Lists the files of the synthetic set. Half of them are for tuning settings, and the other half judges them. */
import { hashOf, isTuning as isEven } from '../../clips/prompts.ts';
import type { Talk } from './plan.ts';

export const CLASSES = ['clean', 'noise', 'telephone', 'distant', 'long', 'meeting', 'room'] as const;
export type ConversationClass = (typeof CLASSES)[number];

export interface Conversation extends Talk {
  /** Such as `noise-3-b`: class, number of speakers, and a letter. */
  name: string;
  conversationClass: ConversationClass;
  tuning: boolean;
  /** Root mean square of the whole file over that of the noise, in decibels; null for no noise. */
  snrDb: number | null;
  telephone: boolean;
  distant: boolean;
  /** As meetings are recorded by one microphone on the table: farther, and some are much softer than others. */
  room: boolean;
}

/** What a conversation has of its own; the rest is the same for most. */
type OfClass = Pick<Conversation, 'speakers' | 'seconds' | 'overlap'> & Partial<Conversation>;

const TURN_SEC = [0.5, 15] as const;
/** People in a meeting answer quickly. */
const MEETING_TURN_SEC = [0.5, 8] as const;
const LENGTHS_SEC = [45, 60, 90, 75, 120, 150] as const;
const OVERLAPS = [0, 0.05, 0.1, 0.2] as const;
const SNRS_DB = [20, 15, 10, 5] as const;
const SPEAKERS = [1, 2, 3, 4, 5, 6] as const;
const ROOM_TURN_SEC = [0.4, 8] as const;
/** Mean pauses from lively to mostly silent. */
const ROOM_PAUSES_SEC = [0.4, 1, 0.6, 3] as const;
const ROOM_SNRS_DB = [15, 10, 5] as const;
const MEETINGS = 16;
const ROOMS = 24;

/** The whole set, always the same. */
export function conversations(): Conversation[] {
  return [true, false].flatMap((tuning) => half(tuning));
}

function half(tuning: boolean): Conversation[] {
  const made = (stem: string, conversationClass: ConversationClass, rest: OfClass): Conversation => ({
    ...{ telephone: false, distant: false, room: false, snrDb: null, turnSec: TURN_SEC },
    name: nameOf(stem, tuning),
    conversationClass,
    tuning,
    ...rest,
  });
  let index = 0;
  const mixed = (['clean', 'noise', 'telephone', 'distant'] as const).flatMap((conversationClass, row) =>
    SPEAKERS.map((speakers) => {
      index += 1;
      return made(`${conversationClass}-${speakers}`, conversationClass, {
        speakers,
        seconds: LENGTHS_SEC[(index + row) % LENGTHS_SEC.length] ?? 60,
        overlap: speakers === 1 ? 0 : (OVERLAPS[(index + row) % OVERLAPS.length] ?? 0),
        telephone: conversationClass === 'telephone',
        distant: conversationClass === 'distant',
        snrDb: conversationClass === 'noise' ? (SNRS_DB[index % SNRS_DB.length] ?? 10) : null,
      });
    }),
  );
  const long = made('long-4', 'long', { speakers: 4, seconds: 600, overlap: 0.1, snrDb: 20 });
  const short = (
    conversationClass: 'meeting' | 'room',
    i: number,
    rest: Omit<OfClass, 'speakers' | 'seconds'>,
  ) => {
    const speakers = 2 + (i % 3);
    const stem = `${conversationClass}${i + 1}-${speakers}`;
    return made(stem, conversationClass, { speakers, seconds: 30, distant: true, ...rest });
  };
  const meetings = Array.from({ length: MEETINGS }, (_, i) =>
    short('meeting', i, { overlap: 0.2 + 0.05 * (i % 4), turnSec: MEETING_TURN_SEC, snrDb: 15 }),
  );
  const rooms = Array.from({ length: ROOMS }, (_, i) =>
    short('room', i, {
      overlap: 0.15 + 0.05 * (i % 5),
      pauseSec: ROOM_PAUSES_SEC[i % ROOM_PAUSES_SEC.length] ?? 1,
      turnSec: ROOM_TURN_SEC,
      room: true,
      snrDb: ROOM_SNRS_DB[Math.floor(i / 3) % ROOM_SNRS_DB.length] ?? 10,
    }),
  );
  return [...mixed, long, ...meetings, ...rooms];
}

/** The first letter behind the name whose sha256 is of that half, as for the clips of `npm run bench -- accuracy`. */
function nameOf(stem: string, tuning: boolean): string {
  const letters = [...'abcdefghijklmnopqrstuvwxyz'];
  const letter = letters.find((last) => isTuning(`${stem}-${last}`) === tuning);
  return `${stem}-${letter}`;
}

export function isTuning(name: string): boolean {
  return isEven(hashOf('', name));
}
