/** Transcripts in the response formats of OpenAI's API. Wire names are born here. */
import { languageName } from './languages.ts';
import type { TranscriptionRequest } from './request.ts';
import type { Route } from './routing.ts';
import type { Segment } from './segment.ts';
import type { Summary } from './transcribe.ts';

export interface Transcript {
  route: Route;
  segments: Segment[];
  summary: Summary;
}

export interface FormattedBody {
  contentType: string;
  body: string;
}

export function formatTranscript(transcript: Transcript, request: TranscriptionRequest): FormattedBody {
  const text = fullText(transcript.segments);
  switch (request.responseFormat) {
    case 'text':
      return { contentType: 'text/plain; charset=utf-8', body: `${text}\n` };
    case 'json':
      return asJson({ text, usage: usage(transcript.summary) });
    case 'verbose_json':
      return asJson(verbose(transcript, request, text));
  }
}

/** Whether this format shows times, so that aligning words is worth its cost. */
export function showsTimes(request: TranscriptionRequest): boolean {
  return request.responseFormat === 'verbose_json';
}

const asJson = (value: unknown): FormattedBody => ({
  contentType: 'application/json; charset=utf-8',
  body: JSON.stringify(value),
});

function fullText(segments: Segment[]): string {
  return segments
    .map((segment) => segment.text)
    .join('')
    .trim();
}

/** OpenAI bills started seconds: 8.47 s of audio are 9. */
function usage(summary: Summary) {
  return { type: 'duration', seconds: Math.ceil(summary.durationSec) };
}

function verbose({ route, segments, summary }: Transcript, request: TranscriptionRequest, text: string) {
  return {
    task: request.translate ? 'translate' : 'transcribe',
    language: request.translate ? 'english' : languageName(summary.language),
    duration: seconds(summary.durationSec),
    text,
    ...(request.granularities.has('segment') && { segments: segments.map(toWireSegment) }),
    ...(request.granularities.has('word') && { words: segments.flatMap((s) => s.words.map(toWireWord)) }),
    usage: usage(summary),
    language_code: request.translate ? 'en' : summary.language,
    language_probability: round(summary.languageProbability, 4),
    model: route.modelId,
    route: route.reason,
  };
}

function toWireSegment(segment: Segment) {
  return {
    id: segment.id,
    seek: segment.seek,
    start: seconds(segment.start),
    end: seconds(segment.end),
    text: segment.text,
    tokens: segment.words.flatMap((word) => word.tokens.map((token) => token.id)),
    temperature: segment.temperature,
    avg_logprob: round(segment.avgLogprob, 6),
    compression_ratio: round(segment.compressionRatio, 6),
    no_speech_prob: round(segment.noSpeechProb, 6),
  };
}

function toWireWord(word: { text: string; start: number; end: number }) {
  return { word: word.text.trim(), start: seconds(word.start), end: seconds(word.end) };
}

const seconds = (value: number) => round(value, 3);

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
