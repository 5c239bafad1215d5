/** Formats segments as timed text: SubRip and WebVTT (https://www.w3.org/TR/webvtt1/). Pure. */
import type { SegmentGranularity } from '../transcription/request.ts';
import { type Segment, textOf } from '../transcription/segment.ts';
import { runsBySpeaker } from '../transcription/speakers/words.ts';
import { toLines, toSubtitles, USUAL_SIZE } from '../transcription/text/subtitles.ts';

/** How long a cue is shown that has no time of its own. */
const LEAST_SEC = 0.5;

export interface Cue {
  start: number;
  end: number;
  text: string;
  /** The text as it is shown; absent where it is one line. */
  lines?: string[] | undefined;
  /** Who says it; absent where speakers are not told apart. */
  speaker?: string | undefined;
}

/**
 * One cue for each sentence, or short cues for reading (`subtitle`), with every model. Times are in seconds. On two
 * channels, cues may overlap.
 * @param durationSec the length of the audio, after which no short cue stays on
 */
export function toCues(
  segments: Segment[],
  granularity: SegmentGranularity,
  durationSec: number,
  size = USUAL_SIZE,
): Cue[] {
  if (granularity === 'sentence')
    return withLength(segments.map(({ start, end, text, speaker }) => ({ start, end, text, speaker })));
  // A cue is of one speaker, so the words of each are cut by themselves.
  const runs = runsBySpeaker(segments.flatMap((segment) => segment.words));
  const cues = runs.flatMap((words, i) => {
    const next = runs[i + 1]?.[0].start ?? durationSec;
    // On two channels the next speaker may begin before these words end.
    const until = Math.max(next, words.at(-1)?.end ?? 0);
    const { speaker } = words[0];
    const prefix = prefixOf(speaker);
    return toSubtitles(words, until, size, prefix).map((cue) => ({
      start: cue.start,
      end: cue.end,
      text: textOf(cue.words),
      lines: toLines(cue.words, size, prefix),
      speaker,
    }));
  });
  return cues.sort((a, b) => a.start - b.start);
}

/**
 * Players show no cue that ends where it begins, as that of a short sentence may between two quick ones. Its text goes
 * to the cue of the same speaker that it touches; a cue without one overlaps what follows.
 */
function withLength(cues: Cue[]): Cue[] {
  const shown: Cue[] = [];
  for (const cue of cues) {
    const last = shown.at(-1);
    const touches = last !== undefined && last.speaker === cue.speaker && cue.start - last.end < 0.001;
    if (touches && !(hasLength(last) && hasLength(cue)))
      shown.splice(-1, 1, { ...last, end: Math.max(last.end, cue.end), text: last.text + cue.text });
    else shown.push(cue);
  }
  return shown.map((cue) => (hasLength(cue) ? cue : { ...cue, end: cue.start + LEAST_SEC }));
}

const hasLength = ({ start, end }: Cue) => Math.round(end * 1000) > Math.round(start * 1000);

const prefixOf = (speaker: string | undefined) => (speaker === undefined ? '' : `${speaker}: `);

/** SubRip text, whose cues are numbered from 1. */
export function toSrt(list: Cue[]): string {
  const body = list.map((cue, i) => {
    const [first = '', ...others] = linesOf(cue);
    const said = [cueText(prefixOf(cue.speaker) + first), ...others];
    return `${i + 1}\n${clock(cue.start, ',')} --> ${clock(cue.end, ',')}\n${said.join('\n')}\n\n`;
  });
  return body.join('');
}

/** WebVTT text, with `&`, `<` and `>` escaped. A speaker is a voice span (section 4.2.2: `<v Name>`). */
export function toVtt(list: Cue[]): string {
  const body = list.map((cue) => {
    const voice = cue.speaker === undefined ? '' : `<v ${escapeVtt(cue.speaker)}>`;
    const said = linesOf(cue).map(escapeVtt).join('\n');
    return `${clock(cue.start, '.')} --> ${clock(cue.end, '.')}\n${voice}${said}\n\n`;
  });
  return `WEBVTT\n\n${body.join('')}`;
}

const linesOf = ({ lines, text }: Cue) => (lines ?? [text]).map(cueText).filter((line) => line !== '');

/** A text on one line and without arrows, because a blank line or an arrow inside a cue would end it early. */
function cueText(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/(?<!-)-{2,}>/g, '->')
    .trim();
}

function escapeVtt(text: string): string {
  return cueText(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** The time as `00:00:01,500`; `mark` is a comma for srt and a point for vtt. */
function clock(timeSec: number, mark: string): string {
  const ms = Math.max(0, Math.round(timeSec * 1000));
  const pad = (value: number, width = 2) => String(value).padStart(width, '0');
  const [h, m, s] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60];
  return `${pad(h)}:${pad(m)}:${pad(s)}${mark}${pad(ms % 1000, 3)}`;
}
