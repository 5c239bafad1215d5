/** POST /v1/audio/transcriptions: fields to a request, the use case, its result in the format asked for. */
import type { RequestHandler } from 'express';
import type { Logger } from 'winston';
import { formatTranscript, showsTimes, type Transcript } from '../transcription/formats.ts';
import { parseRequest, type TranscriptionRequest } from '../transcription/request.ts';
import { type TranscribeDeps, transcribe } from '../transcription/transcribe.ts';
import { clientSignal } from './client-signal.ts';
import type { UploadReceiver } from './upload.ts';

export interface TranscriptionsDeps extends TranscribeDeps {
  uploads: UploadReceiver;
  shutdown: AbortSignal;
  log: Logger;
}

export function transcriptions(deps: TranscriptionsDeps): RequestHandler {
  return async (req, res) => {
    const startedAt = performance.now();
    const signal = clientSignal(res, deps.shutdown);
    await using upload = await deps.uploads.receive(req, res);
    const request = parseRequest(upload.fields);
    const transcript = await collect(request, upload.path, deps, signal);
    const { contentType, body } = formatTranscript(transcript, request);
    const tookMs = performance.now() - startedAt;
    const { route, summary } = transcript;
    deps.log.info('transcribed', {
      requestId: res.locals.requestId,
      model: route.modelId,
      route: route.reason,
      language: summary.language,
      audioSec: Number(summary.durationSec.toFixed(2)),
      tookMs: Math.round(tookMs),
      rtf: Number((tookMs / 1000 / Math.max(summary.durationSec, 0.001)).toFixed(3)),
    });
    res.set({
      'Content-Type': contentType,
      'X-Voxgate-Model': route.modelId,
      'X-Voxgate-Route': route.reason,
      'OpenAI-Processing-Ms': String(Math.round(tookMs)),
    });
    res.send(body);
  };
}

async function collect(
  request: TranscriptionRequest,
  path: string,
  deps: TranscribeDeps,
  signal: AbortSignal,
): Promise<Transcript> {
  const segments: Transcript['segments'] = [];
  let route: Transcript['route'] | undefined;
  for await (const event of transcribe(request, path, showsTimes(request), deps, signal)) {
    if (event.type === 'started') route = event.route;
    else if (event.type === 'segment') segments.push(event.segment);
    else if (route !== undefined) return { route, segments, summary: event.summary };
  }
  throw new Error('The transcription ended without its last event');
}
