/**
 * Formats transcripts as the command of the Whisper reference code writes them (`whisper/utils.py`, WriteTSV and
 * WriteJSON). Servers in front of it answer so, and subtitle programs expect it of them.
 */
import type { TranscriptionRequest } from '../transcription/request.ts';
import type { Transcript } from '../transcription/session.ts';
import { asJson, fullText, plainText, toWireSegment, toWireWord } from './formats.ts';

/** A line for each segment: start and end in whole milliseconds, and the text, after the speaker as in `srt`. */
export function toTsv({ segments }: Transcript) {
  const lines = segments.map(({ start, end, text, speaker }) => {
    const said = speaker === undefined ? text : `${speaker}: ${text.trim()}`;
    return [Math.round(start * 1000), Math.round(end * 1000), said.trim().replace(/\s+/g, ' ')].join('\t');
  });
  return plainText(`${['start\tend\ttext', ...lines].join('\n')}\n`);
}

/** The words, if they were asked for, are members of the segments. `language` is a code. */
export function toWhisperJson({ segments, summary }: Transcript, request: TranscriptionRequest) {
  const withWords = request.granularities.has('word');
  return asJson({
    text: fullText(segments),
    segments: segments.map((segment) => ({
      ...toWireSegment(segment, request),
      ...(withWords && { words: segment.words.map(toWireWord) }),
    })),
    language: request.translate ? 'en' : summary.language,
  });
}
