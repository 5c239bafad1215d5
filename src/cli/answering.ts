/**
 * Answers questions in this process as a gateway answers them over HTTP. A file is read where it lies; only audio that
 * comes as bytes is written to a temporary file.
 */
import { randomUUID } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import type { AppDeps } from '../app.ts';
import { openAudio } from '../audio/open.ts';
import { createAudioOpener } from '../audio/opener.ts';
import type { Config } from '../config/config.ts';
import { createSlot } from '../engine/slot.ts';
import { createWaitingLine } from '../engine/waiting-line.ts';
import { GatewayError } from '../errors.ts';
import { errorEnvelope, toGatewayError } from '../http/error-handler.ts';
import { asShown, type TranscribeOptions, transcribe } from '../http/transcribe.ts';
import { createFormFields } from '../http/upload/form-fields.ts';
import { tooLarge } from '../http/upload/request-body.ts';
import { createSpool, type Spool, type SpooledFile } from '../http/upload/spool.ts';
import { BUDGETS } from '../limits/budgets.ts';
import type { ModelCaches } from '../model-caches.ts';
import { createTranscription, type Naming } from '../recognition.ts';
import { formatTranscript, toDelta } from '../wire/formats.ts';
import { parseRequest, transcriptionFields } from '../wire/request.ts';
import { BUSY_SEC, piecesOf, type Question, RequestError, readable, type Transcriber } from './question.ts';
import type { Fields } from './transcribe-fields.ts';

/** Queues and limits share by client, which they know by its network. A command has one client, itself. */
const NETWORK = '';

type Deps = Pick<AppDeps, 'engine' | 'device' | 'store' | 'log'>;

export function createAnswering(
  config: Config,
  deps: Deps,
  { caches, naming }: { caches: ModelCaches; naming: Naming },
): Transcriber {
  const { engine, log } = deps;
  const { maxAudioSec } = config;
  const searchPath = config.environment.PATH ?? '';
  const opener = createAudioOpener({ engine, searchPath, maxAudioSec });
  const slot = createSlot({ maxHoldMs: config.maxHoldMs });
  const transcription = createTranscription(naming, deps, { slot, beamSize: config.beamSize }, caches);
  // No limit on the queue: the caller bounds how many questions are open at once (`--jobs`).
  const line = createWaitingLine(slot, { ...BUDGETS.waiting, requests: Number.POSITIVE_INFINITY });
  const storage = createStorage(config, log);

  /** @throws GatewayError; `signal.reason` after an abort */
  async function answer(
    audio: TranscribeOptions['audio'],
    { fields, signal, onSegment, onTextUntil }: Question,
  ): Promise<string> {
    const parsed = parseRequest(asSent(fields), naming.aliases);
    const request = asShown(parsed);
    const requestId = randomUUID();
    const waitMs = BUSY_SEC * 1000;
    const ticket = line.ticket({
      category: 'asr',
      requestId,
      network: NETWORK,
      waitMs,
      onWaited: () => undefined,
    });
    try {
      const transcript = await transcribe(
        request,
        parsed.speakers?.known ?? [],
        {
          audio,
          open: (path, opening, heard) => opener.open(path, opening, { network: NETWORK, ...heard }),
          requestId,
          signal,
          onSegment: (segment) => onSegment?.(toDelta(segment, request)),
        },
        { ...transcription, onTextUntil, slot: { isFree: slot.isFree, take: () => ticket.take(signal) } },
      );
      return formatTranscript(transcript, request).body;
    } catch (error) {
      throw toGatewayError(error);
    } finally {
      ticket.end();
    }
  }

  return {
    async ask(question) {
      const { audio, signal } = question;
      try {
        await using files = storage.open();
        const content = typeof audio === 'string' ? await readable(audio, signal) : audio;
        if (typeof content !== 'string')
          return await answer({ path: await files.storeBlob(content), store: files.store }, question);
        const before = await stateOf(content);
        const body = await answer({ path: content, store: files.store }, question);
        if ((await stateOf(content)) !== before) throw new Error(`${content} has changed while it was read`);
        return body;
      } catch (error) {
        signal.throwIfAborted();
        throw error instanceof GatewayError ? refusal(error, log) : error;
      }
    },
    durationOf: (path) => durationOf(path, engine, maxAudioSec),
    async [Symbol.asyncDispose]() {
      await caches.close();
      storage.close();
    },
  };
}

async function durationOf(path: string, engine: Deps['engine'], maxAudioSec: number): Promise<number | null> {
  try {
    // Reading the length of a pipe would use up its first bytes.
    if (!(await stat(path)).isFile()) return null;
    await using source = await openAudio(path, { engine, ffmpeg: null, maxAudioSec });
    return source.durationSec;
  } catch {
    return null; // what is wrong with the file is reported when it is transcribed
  }
}

/** Shows whether a file is still the one that was opened. */
async function stateOf(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  return `${size} ${mtimeMs}`;
}

/** The fields as an upload has them. */
function asSent(fields: Fields): Readonly<Record<string, unknown>> {
  const form = createFormFields(Object.keys(transcriptionFields));
  for (const [name, value] of Object.entries(fields))
    for (const one of [value].flat()) form.add(Array.isArray(value) ? `${name}[]` : name, one);
  return form.all();
}

function refusal(error: GatewayError, log: AppDeps['log']): RequestError {
  if (error.kind === 'internal') log.error('request failed', { cause: inspect(error.cause) });
  return new RequestError(error.status, JSON.stringify(errorEnvelope(error, null)));
}

/** Files for what comes as bytes: the folder is made for the first of them. */
function createStorage({ tmpDir, maxSpoolBytes, maxUploadBytes }: Config, log: AppDeps['log']) {
  const { leastFreeBytes } = BUDGETS.upload;
  let spool: Spool | null = null;
  return {
    open() {
      const stored: SpooledFile[] = [];
      const storeAll = async (content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) => {
        spool ??= createSpool({ tmpDir, log, maxBytes: maxSpoolBytes, leastFreeBytes });
        const file = await spool.store(NETWORK, Readable.from(content));
        stored.push(file);
        return file.path;
      };
      return {
        store: (content: Buffer) => storeAll([content]),
        storeBlob(content: Blob) {
          if (content.size > maxUploadBytes) throw tooLarge(maxUploadBytes, { param: 'file' });
          return storeAll(piecesOf(content, 'The audio'));
        },
        async [Symbol.asyncDispose]() {
          for (const file of stored) await file.remove();
        },
      };
    },
    close: () => spool?.close(),
  };
}
