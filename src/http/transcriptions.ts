/** POST /v1/audio/transcriptions and /v1/audio/translations: fields to a request, the use case, its answer. */
import type { RequestHandler } from 'express';
import type { Logger } from 'winston';
import { showsTimes, type Transcript } from '../transcription/formats.ts';
import { parseRequest, type TranscriptionRequest } from '../transcription/request.ts';
import type { Route } from '../transcription/routing.ts';
import { type Summary, type TranscribeDeps, transcribe } from '../transcription/transcribe.ts';
import { clientSignal } from './client-signal.ts';
import { type Notes, notesOf } from './observe.ts';
import { type Answer, eventAnswer, wholeAnswer } from './transcription-response.ts';
import type { UploadReceiver } from './upload.ts';

export interface TranscriptionsDeps extends TranscribeDeps {
  uploads: UploadReceiver;
  shutdown: AbortSignal;
  log: Logger;
}

/** @param task `translate` makes English of whatever is spoken (the translations endpoint) */
export function transcriptions(deps: TranscriptionsDeps, task: 'transcribe' | 'translate'): RequestHandler {
  return async (req, res) => {
    const notes = notesOf(res);
    const signal = clientSignal(res, deps.shutdown);
    await using upload = await deps.uploads.receive(req, res, signal);
    const parsed = parseRequest(upload.fields);
    const request = task === 'translate' ? { ...parsed, translate: true } : parsed;
    using answer = request.stream
      ? eventAnswer(request, res, { signal, log: deps.log })
      : wholeAnswer(request, res);
    try {
      const transcript = await listen(request, { audioPath: upload.path, signal }, answer, deps, notes);
      await answer.end(transcript); // after the iteration: the slot is free before the client knows the end
      logTranscript(deps.log, transcript, notes);
    } catch (thrown) {
      await answer.fail(thrown);
    }
  };
}

async function listen(
  request: TranscriptionRequest,
  input: { audioPath: string; signal: AbortSignal },
  answer: Answer,
  deps: TranscriptionsDeps,
  notes: Notes,
): Promise<Transcript> {
  const segments: Transcript['segments'] = [];
  let route: Route | undefined;
  let summary: Summary | undefined;
  const listening = { ...input, requestId: notes.requestId, timed: showsTimes(request) };
  for await (const event of transcribe(request, listening, deps)) {
    if (event.type === 'started') {
      route = event.route;
      noteRoute(notes, route);
      answer.begin(route);
    } else if (event.type === 'segment') {
      segments.push(event.segment);
      await answer.segment(event.segment);
    } else {
      summary = event.summary;
      noteSummary(notes, summary);
    }
  }
  if (route === undefined || summary === undefined)
    throw new Error('The transcription ended without its last event');
  return { route, segments, summary };
}

function noteRoute(notes: Notes, route: Route): void {
  notes.slotTaken();
  notes.model = route.modelId;
  notes.route = route.reason;
  notes.provider = route.family;
}

function noteSummary(notes: Notes, { language, durationSec, tookSec }: Summary): void {
  notes.language = language;
  notes.audioSec = Number(durationSec.toFixed(3));
  notes.rtf = durationSec > 0 ? Number((tookSec / durationSec).toFixed(4)) : undefined;
}

function logTranscript(log: Logger, { route, summary }: Transcript, notes: Notes): void {
  log.info('transcribed', {
    requestId: notes.requestId,
    model: route.modelId,
    route: route.reason,
    language: summary.language,
    audioSec: Number(summary.durationSec.toFixed(2)),
    tookMs: Math.round(summary.tookSec * 1000),
    rtf: notes.rtf,
    ...(summary.dropped.length > 0 && { dropped: summary.dropped.length }),
  });
}
