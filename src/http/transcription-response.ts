/** The two ways to answer a transcription: as a whole at the end, or as events while it runs. */
import type { Response } from 'express';
import type { Logger } from 'winston';
import type { TranscriptionRequest } from '../transcription/request.ts';
import type { Route } from '../transcription/routing.ts';
import type { Segment } from '../transcription/segment.ts';
import type { Transcript } from '../transcription/session.ts';
import { type FormattedBody, fullText, toDelta, toDiarizedSegment, toDone } from '../wire/formats.ts';
import { errorEnvelope, noteFailure, toGatewayError } from './error-handler.ts';
import { type EventStream, startEventStream } from './sse.ts';

export interface TranscriptionAnswer extends Disposable {
  /** Starts the answer when nothing known speaks against success. A second call does nothing. */
  begin(route: Route): void;
  segment(segment: Segment): Promise<void>;
  end(transcript: Transcript): Promise<void>;
  /** Reports a failure as an event once the headers are sent; before that it throws, for an ordinary error response. */
  fail(thrown: unknown): Promise<void>;
}

export function wholeAnswer(
  res: Response,
  format: (transcript: Transcript) => FormattedBody,
): TranscriptionAnswer {
  const startedAt = performance.now();
  return {
    begin: (route) => setRoute(res, route),
    segment: async () => undefined,
    async end(transcript) {
      const { contentType, body } = format(transcript);
      const tookMs = Math.round(performance.now() - startedAt);
      res.set({ 'Content-Type': contentType, 'OpenAI-Processing-Ms': String(tookMs) });
      res.send(body);
    },
    async fail(thrown) {
      throw thrown;
    },
    [Symbol.dispose]: () => undefined,
  };
}

export function eventAnswer(
  request: TranscriptionRequest,
  res: Response,
  { signal, log }: { signal: AbortSignal; log: Logger },
): TranscriptionAnswer {
  let open: { out: EventStream; incremental: boolean } | null = null;
  const begun = () => {
    if (open === null) throw new Error('The transcription did not start');
    return open;
  };
  return {
    begin(route) {
      if (open !== null) return;
      setRoute(res, route);
      open = { out: startEventStream(res), incremental: route.model.streams };
    },
    async segment(segment) {
      const { out, incremental } = begun();
      if (!incremental) return;
      await out.send(toDelta(segment, request), signal);
      if (segment.speaker !== undefined) await out.send(toDiarizedSegment(segment), signal);
    },
    async end(transcript) {
      const { out, incremental } = begun();
      if (!incremental) for (const late of downgraded(transcript, request)) await out.send(late, signal);
      await out.send(toDone(transcript, request), signal);
      out.end();
    },
    async fail(thrown) {
      if (open === null) throw thrown;
      const error = toGatewayError(thrown);
      if (error.kind === 'cancelled') throw error;
      // The headers are sent, so the failure becomes an event.
      noteFailure(log, error, res);
      const event = { type: 'error', ...errorEnvelope(error, res) };
      await open.out.send(event, AbortSignal.timeout(5000)).catch(() => undefined);
      open.out.end();
    },
    [Symbol.dispose]: () => open?.out[Symbol.dispose](),
  };
}

/** The events of a model that does not stream: a warning, then one delta with the whole text (contract 6). */
function downgraded({ route, segments }: Transcript, request: TranscriptionRequest) {
  const [first] = segments;
  const last = segments.at(-1);
  const warning = {
    type: 'warning',
    code: 'streaming_unsupported',
    message: `${route.model.id} does not stream; the whole text follows at once`,
  };
  if (first === undefined || last === undefined) return [warning];
  const words = segments.flatMap((segment) => segment.words);
  const whole = toDelta({ ...first, end: last.end, text: fullText(segments), words }, request);
  return [warning, whole, ...segments.filter(({ speaker }) => speaker !== undefined).map(toDiarizedSegment)];
}

function setRoute(res: Response, route: Route): void {
  res.set({ 'X-Voxgate-Model': route.model.id, 'X-Voxgate-Route': route.reason });
}
