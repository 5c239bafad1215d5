/** Reads what ffmpeg prints about a file: its length, its tracks, when the sound begins, and what is damaged. */
import type { Loss } from './decoder.ts';
import { createLossNotes } from './losses.ts';
import type { Track } from './tracks.ts';

const STDERR_WINDOW_CHARS = 4096;

export interface Notes {
  durationSec: number | null;
  /** The time of the first packet of the file, which ffmpeg makes 0. */
  startSec: number;
  noStream: boolean;
  /** True for an MP4 without its `moov` box. */
  noIndex: boolean;
  /** When the sound begins, in seconds; null if no time was printed. */
  beginSec: number | null;
  /** Resolves to the audio tracks once all are listed, or the process has ended. */
  tracks: Promise<readonly Track[]>;
  /** Call this when sound has come: all tracks are listed before it. */
  endTracks(): void;
  /** The losses so far. */
  readonly lost: readonly Loss[];
  /**
   * Call this when ffmpeg has read the file to its end.
   * @param namedSec the length that the header of the file names; null where it names none
   */
  end(heardSec: number, namedSec: number | null): void;
}

/** A line with `-v level+info`: where it comes from, its level, and the message. */
const LINE = /^((?:\[[^\]]* @ 0x[\da-f]+\] )*)\[(\w+)\] (.*)$/;
/** Messages of the muxer are not about the file. */
const ABOUT_OUTPUT = /\[(?:f32le|out#|aost#)/;
/** A line of ffmpeg's list of the streams, such as `Stream #0:1[0x2](eng): Audio: aac, 48000 Hz, stereo (default)`. */
const AUDIO_LINE = /^ {2,4}Stream #0:(\d+)(?:\[0x[\da-f]+\])?(?:\(([\w-]+)\))?: Audio: (.*)$/;
const STREAM_LINE = /^ {2,4}Stream #0:\d/;
const PICTURE = '(attached pic)';
const DURATION = /^ {2}Duration: (\d+):(\d\d):(\d\d\.\d+)(?:, start: (-?\d+\.\d+))?/;
/** What the filters print: a time, or with a minus the length of a gap before the next time. */
const PRINTED = /^-?\d+\.\d{6}$/;
/** Further tracks are ignored; no film has as many. */
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

/** Collects the audio tracks from ffmpeg's list of streams, which ends at `Stream mapping:`. */
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
    /** True if the file has one stream and nothing else. */
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

/** ffmpeg calls it an error where a WebM of unknown length follows another one; it reads both (RFC 9559, section 5.1.2). */
const JOIN = 'unknown-length element with ID 0x18538067';

/** True for a message about damage. Corrupt packets are warnings. */
const isDamage = (level: string, from: string, words: string) =>
  (level === 'error' || level === 'fatal' || (level === 'warning' && words.includes('corrupt'))) &&
  !ABOUT_OUTPUT.test(from) &&
  !words.includes(JOIN);

/**
 * Metadata of the file makes lines of any length, so only the first `STDERR_WINDOW_CHARS` of each are kept.
 * @param longestSec a sound that begins later has a wrong time
 * @param isDamaged true if every gap is damage
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
  // For formats that do not name their length, such as raw AAC, ffmpeg's guess may be many times too long.
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
      const sec = Number(words);
      notes.beginSec ??= Math.min(sec, longestSec);
      if (sec < 0) losses.gap(-sec);
      else losses.heard(sec);
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
