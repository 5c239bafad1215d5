/**
 * Formats transcripts as the command of the Whisper reference code writes them (`whisper/utils.py`, WriteTSV and
 * WriteJSON). Servers in front of it answer so, and subtitle programs expect it of them.
 */

import type { TranscriptionRequest } from '../transcription/request.ts';
import { type FormattedBody, fullText, type Transcript, toWireSegment, toWireWord } from './formats.ts';

/** A line for each segment: start and end in whole milliseconds, and the text, after the speaker as in `srt`. */
export function toTsv({ segments }: Transcript): FormattedBody {
  const lines = segments.map(({ start, end, text, speaker }) => {
    const said = speaker === undefined ? text : `${speaker}: ${text.trim()}`;
    return [Math.round(start * 1000), Math.round(end * 1000), said.trim().replace(/\s+/g, ' ')].join('\t');
  });
  const body = `${['start\tend\ttext', ...lines].join('\n')}\n`;
  return { contentType: 'text/plain; charset=utf-8', body };
}

/** The words, if they were asked for, are members of the segments. `language` is a code. */
export function toWhisperJson(
  { segments, summary }: Transcript,
  request: TranscriptionRequest,
): FormattedBody {
  const withWords = request.granularities.has('word');
  const body = JSON.stringify({
    text: fullText(segments),
    segments: segments.map((segment) => ({
      ...toWireSegment(segment, request),
      ...(withWords && { words: segment.words.map(toWireWord) }),
    })),
    language: request.translate ? 'en' : summary.language,
  });
  return { contentType: 'application/json; charset=utf-8', body };
}
