/** Runs a transcription to its transcript. It is the same for a request over HTTP and for a command of this process. */
import type { Channel } from '../audio/decoder.ts';
import type { AudioSource } from '../audio/open.ts';
import type { AudioOptions } from '../audio/opener.ts';
import { parseLanguage } from '../transcription/language/names.ts';
import type { SpeakerRequest, TranscriptionRequest } from '../transcription/request.ts';
import type { Route } from '../transcription/routing.ts';
import type { Segment } from '../transcription/segment.ts';
import { openTranscription, type Transcript, type TranscriptionDeps } from '../transcription/session.ts';
import { showsSpeakers, showsTimes } from '../wire/formats.ts';
import { readReferences } from './upload/references.ts';
import type { Upload } from './upload/upload.ts';

export interface TranscribeOptions {
  audio: Pick<Upload, 'path' | 'store'>;
  open(path: string, signal: AbortSignal, options?: AudioOptions): Promise<AudioSource>;
  requestId: string;
  signal: AbortSignal;
  /** The seconds of speech after which nothing more need be heard; absent for all of the audio. */
  enoughSec?: number | undefined;
  /** The three are called in this order, and `onFetching` possibly never (`TranscriptionInput`). */
  onRoute?(route: Route): void;
  onFetching?(route: Route): void;
  /** Called when the slot is taken. */
  onBegun?(route: Route): void;
  onSegment?(segment: Segment): Promise<void> | void;
}

/** The request without speakers where its answer shows none: they need not be told apart then. */
export const asShown = (request: TranscriptionRequest): TranscriptionRequest =>
  showsSpeakers(request) ? request : { ...request, speakers: null };

/**
 * @param known the voices that are given, which must be usable also where the answer shows no speakers
 * @throws GatewayError for failures that the client or the operator can correct; `signal.reason` after an abort
 */
export async function transcribe(
  request: TranscriptionRequest,
  known: SpeakerRequest['known'],
  { audio, open, requestId, signal, enoughSec = Number.POSITIVE_INFINITY, ...on }: TranscribeOptions,
  deps: TranscriptionDeps,
): Promise<Transcript> {
  const { language, track } = request;
  const input = {
    openAudio: (opening: AbortSignal, channel: Channel | undefined = request.channel) =>
      open(audio.path, opening, {
        channel,
        track,
        channelField: request.channel === undefined ? 'speakers' : 'channel',
        isLanguage: language === undefined ? undefined : (tag) => parseLanguage(tag) === language,
      }),
    references: await readReferences(known, { upload: audio, open, signal }),
    requestId,
    timed: showsTimes(request) || Number.isFinite(enoughSec), // without times no segment has a length
    signal,
    onRoute: (route: Route) => on.onRoute?.(route),
    onFetching: (route: Route) => on.onFetching?.(route),
  };
  await using session = await openTranscription(request, input, deps);
  on.onBegun?.(session.route);
  const segments: Transcript['segments'] = [];
  let speechSec = 0;
  for await (const segment of session.segments()) {
    segments.push(segment);
    await on.onSegment?.(segment);
    speechSec += segment.end - segment.start;
    if (speechSec >= enoughSec) break;
  }
  return { route: session.route, segments, summary: session.summary() };
}
