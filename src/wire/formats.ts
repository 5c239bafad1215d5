/**
 * Formats transcripts as OpenAI's API does (https://platform.openai.com/docs/api-reference/audio). Maps domain names to
 * OpenAI's.
 */
import { languageName } from '../transcription/language/names.ts';
import type { TranscriptionRequest } from '../transcription/request.ts';
import { type Segment, type SpokenSegment, spelledIn, textOf, type Word } from '../transcription/segment.ts';
import type { Summary, Transcript } from '../transcription/session.ts';
import { runsBySpeaker } from '../transcription/speakers/words.ts';
import { toCues, toSrt, toVtt } from './cues.ts';

export interface FormattedBody {
  contentType: string;
  body: string;
}

export function formatTranscript(transcript: Transcript, request: TranscriptionRequest): FormattedBody {
  const { segmentGranularity, subtitleSize } = request;
  const cues = () =>
    toCues(transcript.segments, segmentGranularity, transcript.summary.durationSec, subtitleSize);
  const text = fullText(transcript.segments);
  switch (request.responseFormat) {
    case 'text':
      return plainText(`${showsSpeakers(request) ? textBySpeaker(transcript.segments) : text}\n`);
    case 'srt':
      return plainText(toSrt(cues()));
    case 'vtt':
      return plainText(toVtt(cues()));
    case 'json':
      return asJson({
        text,
        usage: usage(transcript.summary),
        ...languages(transcript.summary, request),
        ...logprobs(transcript.segments, request),
      });
    case 'verbose_json':
      return asJson(verbose(transcript, request, text));
    case 'diarized_json':
      return asJson(diarized(transcript, request));
  }
}

/** The answer of an alignment: the words of the text, and its sentences. */
export function formatAlignment({ route, segments, summary }: Transcript): FormattedBody {
  return asJson({
    task: 'align',
    language: languageName(summary.language),
    duration: seconds(summary.durationSec),
    text: fullText(segments),
    words: segments.flatMap((segment) => segment.words.map(toWireWord)),
    segments: segments.map((segment) => ({ id: segment.id, ...timesOf(segment), text: segment.text })),
    usage: usage(summary),
    language_code: summary.language,
    language_probability: round(summary.languageProbability, 4),
    model: route.model.id,
    route: route.reason,
  });
}

/** True when the answer shows times or needs them, so that aligning the words is worth its cost. */
export function showsTimes(request: TranscriptionRequest): boolean {
  return request.stream || showsSpeakers(request) || !['json', 'text'].includes(request.responseFormat);
}

/**
 * True when the answer shows who speaks, so that telling speakers apart is worth its cost. Channels are always heard
 * by themselves, because what a file must be like should not depend on the format of the answer.
 */
export function showsSpeakers(request: TranscriptionRequest): boolean {
  if (request.channels !== null) return true;
  return request.speakers !== null && (request.stream || request.responseFormat !== 'json');
}

/** The stream event for one segment. The deltas of all segments, joined, are the text. */
export function toDelta(segment: Segment, request: TranscriptionRequest) {
  return {
    type: 'transcript.text.delta',
    delta: segment.id === 0 ? segment.text.trimStart() : segment.text,
    segment_id: segment.speaker === undefined ? String(segment.id) : diarizedId(segment),
    ...timesOf(segment),
    ...logprobs([segment], request),
  };
}

/** The segment of `diarized_json`, which is also an event of streams in which speakers are told apart. */
export function toDiarizedSegment(segment: SpokenSegment) {
  return {
    type: 'transcript.text.segment',
    id: diarizedId(segment),
    ...timesOf(segment),
    text: segment.text.trim(),
    speaker: segment.speaker ?? '',
  };
}

/** OpenAI numbers these segments `seg_001`, `seg_002` ... */
const diarizedId = ({ id }: Pick<Segment, 'id'>) => `seg_${String(id + 1).padStart(3, '0')}`;

/** The last event of a stream, with the whole text and all segments. */
export function toDone({ route, segments, summary }: Transcript, request: TranscriptionRequest) {
  return {
    type: 'transcript.text.done',
    text: fullText(segments),
    usage: usage(summary),
    language: languageShown(summary, request),
    duration: seconds(summary.durationSec),
    model: route.model.id,
    route: route.reason,
    segments: segments.map((segment) => toWireSegment(segment, request)),
    ...spokenBy(summary),
    ...languages(summary, request),
    ...logprobs(segments, request),
  };
}

export const asJson = (value: unknown): FormattedBody => ({
  contentType: 'application/json; charset=utf-8',
  body: JSON.stringify(value),
});

export const plainText = (body: string): FormattedBody => ({
  contentType: 'text/plain; charset=utf-8',
  body,
});

/** The texts of all segments, joined and without spaces at both ends. */
export const fullText = (segments: Segment[]): string => textOf(segments).trim();

/** A line for each change of the speaker: `Anna: Good morning.` */
function textBySpeaker(segments: Segment[]): string {
  return runsBySpeaker(segments)
    .map((run) => `${run[0].speaker ?? ''}: ${fullText(run)}`)
    .join('\n');
}

function diarized({ segments, summary }: Transcript, request: TranscriptionRequest) {
  return {
    task: request.translate ? 'translate' : 'transcribe',
    duration: seconds(summary.durationSec),
    text: textBySpeaker(segments),
    segments: segments.map(toDiarizedSegment),
    usage: usage(summary),
  };
}

/** `turns` are what an error rate of speakers is computed on. */
function spokenBy({ spoken }: Summary) {
  if (spoken === undefined) return {};
  return {
    turns: spoken.turns.map((turn) => ({ speaker: turn.speaker, ...timesOf(turn) })),
    speakers: spoken.speakers.map((of) => ({ speaker: of.speaker, seconds: seconds(of.seconds) })),
  };
}

/** OpenAI bills started seconds, so 8.47 s of audio count as 9. */
export function usage(summary: Pick<Summary, 'durationSec'>) {
  return { type: 'duration', seconds: Math.ceil(summary.durationSec) };
}

function languageShown(summary: Summary, request: TranscriptionRequest): string {
  return request.translate ? 'english' : languageName(summary.language);
}

/** OpenAI sends the languages of one model only, and an empty list where it is unsure. Clients of others expect none. */
function languages(
  { language, languageProbability }: Summary,
  { listsLanguages }: Pick<TranscriptionRequest, 'listsLanguages'>,
) {
  if (!listsLanguages) return {};
  return { languages: languageProbability > 0 ? [{ code: language }] : [] };
}

/** The log probability of each token, when the request asks for them; else nothing. */
export function logprobs(segments: Segment[], request: Pick<TranscriptionRequest, 'logprobs'>) {
  if (!request.logprobs) return {};
  const tokens = segments.flatMap(({ words }) => words.flatMap((word) => word.tokens));
  return {
    logprobs: spelledIn(tokens).map(({ bytes, logprob }) => ({
      token: Buffer.from(bytes).toString(),
      logprob: round(logprob, 6),
      bytes: [...bytes],
    })),
  };
}

function verbose({ route, segments, summary }: Transcript, request: TranscriptionRequest, text: string) {
  return {
    task: request.translate ? 'translate' : 'transcribe',
    language: languageShown(summary, request),
    duration: seconds(summary.durationSec),
    text,
    ...(request.granularities.has('segment') && { segments: segments.map((s) => toWireSegment(s, request)) }),
    ...(request.granularities.has('word') && { words: segments.flatMap((s) => s.words.map(toWireWord)) }),
    usage: usage(summary),
    ...spokenBy(summary),
    language_code: request.translate ? 'en' : summary.language,
    language_probability: round(summary.languageProbability, 4),
    model: route.model.id,
    route: route.reason,
    ...(summary.track !== undefined && { track: summary.track }),
    ...(summary.dropped.length > 0 && {
      dropped: summary.dropped.map((span) => ({ ...timesOf(span), reason: span.reason })),
    }),
    ...logprobs(segments, request),
  };
}

export function toWireSegment(segment: Segment, request: TranscriptionRequest) {
  return {
    id: segment.id,
    seek: segment.seek,
    ...timesOf(segment),
    text: segment.text,
    tokens: segment.words.flatMap((word) => word.tokens.map((token) => token.id)),
    temperature: segment.temperature,
    avg_logprob: round(segment.avgLogprob, 6),
    compression_ratio: round(segment.compressionRatio, 6),
    no_speech_prob: round(segment.noSpeechProb, 6),
    ...languageOf(segment, request),
    ...speakerOf(segment),
    ...(request.taskType === 'rich' && tagsOf(segment)),
  };
}

function tagsOf({ emotion, event }: Segment) {
  return { ...(emotion !== undefined && { emotion }), ...(event !== undefined && { event }) };
}

/** A language that the client gave, or a translation, is the same for all segments and stands in the answer itself. */
function languageOf({ language }: Segment, request: TranscriptionRequest) {
  if (request.language !== undefined || request.translate) return {};
  return { language: languageName(language), language_code: language };
}

export function toWireWord(word: Word) {
  return {
    word: word.text.trim(),
    ...timesOf(word),
    probability: probabilityOf(word),
    ...speakerOf(word),
  };
}

/** The mean of the probabilities of the tokens, as in the Whisper reference code (`add_word_timestamps`). */
function probabilityOf({ tokens }: Word): number {
  const spelled = spelledIn(tokens);
  const sum = spelled.reduce((total, { logprob }) => total + Math.exp(logprob), 0);
  return round(Math.min(1, sum / Math.max(1, spelled.length)), 4);
}

const speakerOf = ({ speaker }: { speaker?: string }) => (speaker === undefined ? {} : { speaker });

const timesOf = ({ start, end }: { start: number; end: number }) => ({
  start: seconds(start),
  end: seconds(end),
});

const seconds = (value: number) => round(value, 3);

function round(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
