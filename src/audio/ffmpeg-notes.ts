/** Reads what ffmpeg says about a file: its length, its tracks, when its sound begins, and what is damaged in it. */
import type { Loss } from './decoder.ts';
import { createLossNotes, type LossNotes } from './losses.ts';
import type { Track } from './tracks.ts';

const STDERR_WINDOW_CHARS = 4096;

export interface Notes {
  durationSec: number | null;
  /** The time of the first packet of the file, which ffmpeg makes 0. */
  startSec: number;
  noStream: boolean;
  /** The box of an MP4 is missing that says where its sound is. */
  noIndex: boolean;
  /** When the sound begins in the file, seconds; null where the times of the file do not count. */
  beginSec: number | null;
  /** The audio tracks, once all are listed or the process has ended. */
  tracks: Promise<readonly Track[]>;
  /** Sound has come, and all tracks are listed before it. */
  endTracks(): void;
  /** What was lost so far. */
  readonly lost: readonly Loss[];
  /**
   * ffmpeg has read the file to its end, and gave this much sound.
   * @param namedSec the length that the header of the file names; null where it names none
   */
  end(heardSec: number, namedSec: number | null): void;
}

/** What ffmpeg puts before its words: where they come from, and with `-v level+info` how bad it is. */
const LINE = /^((?:\[[^\]]* @ 0x[\da-f]+\] )*)\[(\w+)\] (.*)$/;
/** What the writer of the samples says is not about the file. */
const ABOUT_OUTPUT = /\[(?:f32le|out#|aost#)/;
/** A line of ffmpeg's list of the streams, such as `Stream #0:1[0x2](eng): Audio: aac, 48000 Hz, stereo (default)`. */
const AUDIO_LINE = /^ {2,4}Stream #0:(\d+)(?:\[0x[\da-f]+\])?(?:\(([\w-]+)\))?: Audio: (.*)$/;
const STREAM_LINE = /^ {2,4}Stream #0:\d/;
const PICTURE = '(attached pic)';
const DURATION = /^ {2}Duration: (\d+):(\d\d):(\d\d\.\d+)(?:, start: (-?\d+\.\d+))?/;
/** What the filters print: a time of the sound, or with a minus the length of a gap before the next one. */
const PRINTED = /^-?\d+\.\d{6}$/;
/** More are not told apart; no film has as many. */
const MOST_TRACKS = 64;

function trackIn(language: string | undefined, described: string): Track {
  return {
    isDecodable: !described.startsWith('none'),
    isDefault: described.includes('(default)'),
    isComment: described.includes('(comment)'),
    language,
    layout: / Hz, ([^,]+)/.exec(described)?.[1] ?? '',
  };
}

/** Collects the audio tracks from ffmpeg's list of streams, line by line, until what it does with them is listed. */
function createTrackList() {
  const found = new Map<number, Track>();
  let resolve: (tracks: readonly Track[]) => void = () => undefined;
  const promise = new Promise<readonly Track[]>((settle) => {
    resolve = settle;
  });
  let isOver = false;
  let streams = 0;
  const end = () => {
    isOver = true;
    resolve([...found].sort(([a], [b]) => a - b).map(([, track]) => track));
  };
  return {
    promise,
    end,
    /** True where the sound is all that the file has. */
    isAlone: () => streams === 1,
    read(line: string) {
      if (isOver) return;
      if (line.startsWith('Stream mapping:')) return end();
      if (STREAM_LINE.test(line) && !line.includes(PICTURE)) streams += 1;
      const [, index, language, described] = AUDIO_LINE.exec(line) ?? [];
      if (described !== undefined && found.size < MOST_TRACKS)
        found.set(Number(index), trackIn(language, described));
    },
  };
}

/** A line about damage. A packet that is corrupt comes with a warning. */
const isDamage = (level: string, from: string, words: string) =>
  (level === 'error' || level === 'fatal' || (level === 'warning' && words.includes('corrupt'))) &&
  !ABOUT_OUTPUT.test(from);

function readPrinted(printed: string, losses: LossNotes): void {
  const sec = Number(printed);
  if (sec < 0) losses.gap(-sec);
  else losses.heard(sec);
}

/**
 * Its lines hold the metadata of the file, which has no bound, so only the first `STDERR_WINDOW_CHARS` of one are kept.
 * @param longestSec a later begin of the sound is an error in the file
 * @param isDamaged true where every gap is damage
 */
export function readNotes(stderr: NodeJS.ReadableStream, longestSec: number, isDamaged: boolean): Notes {
  const list = createTrackList();
  const losses = createLossNotes(isDamaged);
  const notes: Notes = {
    durationSec: null,
    startSec: 0,
    noStream: false,
    noIndex: false,
    beginSec: null,
    tracks: list.promise,
    endTracks: list.end,
    get lost() {
      return losses.found;
    },
    end(heardSec, namedSec) {
      losses.end(heardSec, namedSec, list.isAlone());
    },
  };
  // Raw AAC and a few others do not say how long they are. What ffmpeg then guesses may be many times too long.
  let isGuess = false;

  function readLine(line: string): void {
    const [, from = '', level = '', words = line] = LINE.exec(line) ?? [];
    isGuess ||= words.includes('Estimating duration from bitrate');
    notes.noStream ||= words.includes('matches no streams');
    notes.noIndex ||= words.includes('moov atom not found');
    const [, hours, minutes, seconds, start = 0] = DURATION.exec(words) ?? [];
    if (hours !== undefined && !isGuess) {
      notes.durationSec ??= Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
      notes.startSec = Math.max(0, Number(start));
    }
    list.read(words);
    if (PRINTED.test(words)) {
      notes.beginSec ??= Math.min(Number(words), longestSec);
      readPrinted(words, losses);
    } else if (isDamage(level, from, words)) losses.damage(words);
  }

  let rest = '';
  stderr.setEncoding('utf8');
  stderr.on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()?.slice(0, STDERR_WINDOW_CHARS) ?? '';
    for (const line of lines) readLine(line.slice(0, STDERR_WINDOW_CHARS));
  });
  stderr.on('close', () => {
    readLine(rest);
    list.end();
  });
  return notes;
}
