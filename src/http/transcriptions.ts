/** POST /v1/audio/transcriptions and /v1/audio/translations: fields to a request, the use case, its answer. */
import type { RequestHandler, Response } from 'express';
import type { Logger } from 'winston';
import {
  formatTranscript,
  fullText,
  showsTimes,
  type Transcript,
  toDelta,
  toDone,
} from '../transcription/formats.ts';
import { parseRequest, type TranscriptionRequest } from '../transcription/request.ts';
import type { Route } from '../transcription/routing.ts';
import { type TranscribeDeps, type TranscriptionEvent, transcribe } from '../transcription/transcribe.ts';
import { clientSignal } from './client-signal.ts';
import { errorEnvelope, logFailure, toGatewayError } from './error-handler.ts';
import { streams } from './models.ts';
import { startEventStream } from './sse.ts';
import type { UploadReceiver } from './upload.ts';

export interface TranscriptionsDeps extends TranscribeDeps {
  uploads: UploadReceiver;
  shutdown: AbortSignal;
  log: Logger;
}

/** @param task `translate` makes English of whatever is spoken (the translations endpoint) */
export function transcriptions(deps: TranscriptionsDeps, task: 'transcribe' | 'translate'): RequestHandler {
  return async (req, res) => {
    const startedAt = performance.now();
    const signal = clientSignal(res, deps.shutdown);
    await using upload = await deps.uploads.receive(req, res, signal);
    const parsed = parseRequest(upload.fields);
    const request = task === 'translate' ? { ...parsed, translate: true } : parsed;
    const events = transcribe(request, upload.path, showsTimes(request), deps, signal);
    const transcript = request.stream
      ? await stream(events, request, res, signal, deps.log)
      : await answer(events, request, res, startedAt);
    if (transcript !== null) logTranscript(deps.log, transcript, res, startedAt);
  };
}

async function answer(
  events: AsyncIterable<TranscriptionEvent>,
  request: TranscriptionRequest,
  res: Response,
  startedAt: number,
): Promise<Transcript> {
  const segments: Transcript['segments'] = [];
  let route: Route | undefined;
  for await (const event of events) {
    if (event.type === 'started') route = event.route;
    else if (event.type === 'segment') segments.push(event.segment);
    else if (route !== undefined) {
      const transcript = { route, segments, summary: event.summary };
      const { contentType, body } = formatTranscript(transcript, request);
      setRoute(res, route);
      res.set({ 'Content-Type': contentType, 'OpenAI-Processing-Ms': tookMs(startedAt).toString() });
      res.send(body);
      return transcript;
    }
  }
  throw new Error('The transcription ended without its last event');
}

/** Once the headers are out a failure is an event of its own; null then. */
async function stream(
  events: AsyncIterable<TranscriptionEvent>,
  request: TranscriptionRequest,
  res: Response,
  signal: AbortSignal,
  log: Logger,
): Promise<Transcript | null> {
  const iterator = events[Symbol.asyncIterator]();
  const first = await iterator.next(); // what fails before the slot is taken is still an ordinary error
  if (first.done || first.value.type !== 'started') throw new Error('The transcription did not start');
  const { route } = first.value;
  setRoute(res, route);
  using out = startEventStream(res);
  const segments: Transcript['segments'] = [];
  const incremental = streams(route);
  try {
    for await (const event of { [Symbol.asyncIterator]: () => iterator }) {
      if (event.type === 'segment') {
        segments.push(event.segment);
        if (incremental) await out.send(toDelta(event.segment, request), signal);
      } else if (event.type === 'done') {
        const transcript = { route, segments, summary: event.summary };
        if (!incremental) for (const late of downgraded(transcript, request)) await out.send(late, signal);
        await out.send(toDone(transcript, request), signal);
        out.end();
        return transcript;
      }
    }
  } catch (thrown) {
    const error = toGatewayError(thrown);
    logFailure(log, error, res);
    if (error.kind === 'cancelled') throw error;
    await out
      .send({ type: 'error', ...errorEnvelope(error, res) }, AbortSignal.timeout(5000))
      .catch(() => undefined);
    out.end();
  }
  return null;
}

/** A model that does not stream says so and gives its whole text at once (contract 6). */
function downgraded({ route, segments }: Transcript, request: TranscriptionRequest) {
  const [first] = segments;
  const last = segments.at(-1);
  const warning = {
    type: 'warning',
    code: 'streaming_unsupported',
    message: `${route.modelId} does not stream; the whole text follows at once`,
  };
  if (first === undefined || last === undefined) return [warning];
  const words = segments.flatMap((segment) => segment.words);
  return [warning, toDelta({ ...first, end: last.end, text: fullText(segments), words }, request)];
}

function setRoute(res: Response, route: Route): void {
  res.set({ 'X-Voxgate-Model': route.modelId, 'X-Voxgate-Route': route.reason });
}

function tookMs(startedAt: number): number {
  return Math.round(performance.now() - startedAt);
}

function logTranscript(log: Logger, { route, summary }: Transcript, res: Response, startedAt: number): void {
  const ms = tookMs(startedAt);
  log.info('transcribed', {
    requestId: res.locals.requestId,
    model: route.modelId,
    route: route.reason,
    language: summary.language,
    audioSec: Number(summary.durationSec.toFixed(2)),
    tookMs: ms,
    rtf: Number((ms / 1000 / Math.max(summary.durationSec, 0.001)).toFixed(3)),
    ...(summary.dropped.length > 0 && { dropped: summary.dropped.length }),
  });
}
