/**
 * POST /v1/audio/transcriptions, /v1/audio/translations and /v1/audio/alignments. The handler parses the fields into a
 * request, runs a transcription session and writes its segments to the answer.
 */
import type { Request, RequestHandler } from 'express';
import type { Logger } from 'winston';
import type { AudioSource } from '../audio/open.ts';
import type { AudioOptions } from '../audio/opener.ts';
import type { Aliases } from '../models/names.ts';
import type { TranscriptionRequest } from '../transcription/request.ts';
import type { Route } from '../transcription/routing.ts';
import type { Summary, Transcript, TranscriptionDeps } from '../transcription/session.ts';
import { alignmentFields, parseAlignment } from '../wire/alignment-fields.ts';
import { type FormattedBody, formatAlignment, formatTranscript } from '../wire/formats.ts';
import { parseRequest, transcriptionFields } from '../wire/request.ts';
import { ticketOf } from './admission.ts';
import { type Notes, notesOf } from './observe.ts';
import { clientSignal } from './server/client-signal.ts';
import { deploymentOf } from './server/request-target.ts';
import { asShown, transcribe } from './transcribe.ts';
import { eventAnswer, wholeAnswer } from './transcription-response.ts';
import type { ReceiveUpload, Upload, UploadForm } from './upload/upload.ts';

export interface TranscriptionHandlerDeps {
  transcription: TranscriptionDeps;
  openAudio(path: string, signal: AbortSignal, options: AudioOptions): Promise<AudioSource>;
  receiveUpload: ReceiveUpload;
  shutdown: AbortSignal;
  log: Logger;
}

/** How an endpoint asks for a transcription and answers it. All endpoints have the same limits, stages and errors. */
export interface Dialect {
  upload(req: Request): UploadForm;
  request(fields: Upload['fields'], req: Request, aliases: Aliases): TranscriptionRequest;
  answer(transcript: Transcript, request: TranscriptionRequest, req: Request): FormattedBody;
  /** The seconds of speech after which nothing more need be heard; absent for all of the audio. */
  enoughSec?: number;
}

/** @param task `translate` gives English text for speech in any language (the translations endpoint) */
export function openaiDialect(task: 'transcribe' | 'translate'): Dialect {
  return {
    upload: () => ({ field: 'file', texts: Object.keys(transcriptionFields) }),
    request(fields, _req, aliases) {
      const parsed = parseRequest(fields, aliases);
      return { ...parsed, translate: parsed.translate || task === 'translate' };
    },
    answer: formatTranscript,
  };
}

/** The text is the client's, and the answer says when its words are spoken. */
export const alignmentDialect: Dialect = {
  upload: () => ({ field: 'file', texts: Object.keys(alignmentFields) }),
  request: (fields) => parseAlignment(fields),
  answer: formatAlignment,
};

export function transcriptions(deps: TranscriptionHandlerDeps, dialect: Dialect): RequestHandler {
  return async (req, res) => {
    const notes = notesOf(res);
    const signal = clientSignal(res, deps.shutdown);
    await using upload = await deps.receiveUpload(req, res, signal, dialect.upload(req));
    // In Azure's API the path names the model, and not the form.
    const model = deploymentOf(req);
    const fields = model === undefined ? upload.fields : { ...upload.fields, model };
    const parsed = dialect.request(fields, req, deps.transcription.aliases);
    notes.model = parsed.model; // the name, for a request that fails before a model is chosen
    const request = asShown(parsed);
    using answer = request.stream
      ? eventAnswer(request, res, { signal, log: deps.log })
      : wholeAnswer(res, (transcript) => dialect.answer(transcript, request, req));
    try {
      // What the request held is free before the client sees the end, so its next request does not find it taken.
      const { isFree } = deps.transcription.slot;
      const slot = { isFree, take: () => ticketOf(res).take(signal) };
      const running = transcribe(
        request,
        parsed.speakers?.known ?? [],
        {
          audio: upload,
          open: (path, opening, options) =>
            deps.openAudio(path, opening, { network: upload.network, ...options }),
          requestId: notes.requestId,
          signal,
          enoughSec: dialect.enoughSec,
          onRoute: (route) => noteRoute(notes, route),
          onFetching: answer.begin,
          onBegun(route) {
            notes.slotTaken();
            answer.begin(route);
          },
          onSegment: answer.segment,
        },
        { ...deps.transcription, slot },
      );
      const transcript = await running.finally(() => upload[Symbol.asyncDispose]());
      noteSummary(notes, transcript.summary);
      await answer.end(transcript);
      logTranscript(deps.log, transcript, notes);
    } catch (thrown) {
      await answer.fail(thrown);
    }
  };
}

function noteRoute(notes: Notes, route: Route): void {
  notes.model = route.model.id;
  notes.route = route.reason;
  notes.provider = route.model.provider;
}

function noteSummary(notes: Notes, { language, durationSec, tookSec, spoken }: Summary): void {
  notes.speakers = spoken?.speakers.length;
  notes.diarizationSec = spoken?.tookSec === undefined ? undefined : Number(spoken.tookSec.toFixed(3));
  notes.language = language;
  notes.audioSec = Number(durationSec.toFixed(3));
  notes.rtf = durationSec > 0 ? Number((tookSec / durationSec).toFixed(4)) : undefined;
}

function logTranscript(log: Logger, { route, summary }: Transcript, notes: Notes): void {
  log.info('transcribed', {
    requestId: notes.requestId,
    model: route.model.id,
    route: route.reason,
    language: summary.language,
    audioSec: Number(summary.durationSec.toFixed(2)),
    tookMs: Math.round(summary.tookSec * 1000),
    rtf: notes.rtf,
    ...(summary.dropped.length > 0 && { dropped: summary.dropped.length }),
  });
}
