/**
 * The shapes of the API's answers as zod schemas. `/openapi.json` shows them, and the tests check the answers with
 * them. The objects are loose, because fields may be added within /v1.
 */
import { z } from 'zod';
import { ERROR_KINDS } from '../../errors.ts';
import { PROVIDERS } from '../../models/catalogue.ts';

const sec = (what: string) => z.number().min(0).describe(`${what}, seconds`);

export const errorEnvelopeSchema = z
  .looseObject({
    error: z.looseObject({
      kind: z.enum(ERROR_KINDS).describe('what clients branch on'),
      provider: z.enum(PROVIDERS),
      message: z.string().describe('a sentence for people; the wording may change'),
      type: z.string(),
      param: z.string().nullable().describe('the field at fault'),
      code: z
        .union([z.string(), z.number()])
        .nullable()
        .describe('a number only if it comes from an upstream'),
      request_id: z.string().optional().describe('on a 5xx: the id to search for in the log'),
      retry_after_sec: z.int().optional().describe('on a 503 of an upstream: its `Retry-After`'),
      held_by: z.enum(['asr', 'tts', 'llm']).optional().describe('slot_busy: the capability in use'),
      held_for_ms: z.number().optional().describe('slot_busy: how long the slot has been held'),
    }),
  })
  .meta({ id: 'ErrorEnvelope' });

export const healthSchema = z
  .looseObject({ status: z.literal('ok'), version: z.string() })
  .meta({ id: 'HealthResponse' });

export const readySchema = z.looseObject({ status: z.literal('ready') }).meta({ id: 'ReadyResponse' });

export const modelEntrySchema = z
  .looseObject({
    id: z.string(),
    object: z.literal('model'),
    created: z.int().describe('unix seconds'),
    owned_by: z.string(),
    capabilities: z.array(z.enum(['asr', 'tts', 'llm', 'embedding'])),
    languages: z.array(z.string()).optional().describe('ISO 639 codes; ASR models only, not `auto`'),
    supports_streaming: z.boolean(),
    supports_translation: z.boolean().optional().describe('to English; ASR models only'),
    supports_diarization: z.boolean().optional().describe('tells speakers apart; ASR models only'),
    supports_alignment: z.boolean().optional().describe('says when a given text is spoken; ASR models only'),
    is_routing_alias: z.boolean().describe('true only on `auto`'),
    alias_of: z
      .string()
      .optional()
      .describe(
        'the id that the name stands for; on names from `SVC_MODEL_ALIASES` and on other names asked for',
      ),
    size_bytes: z
      .int()
      .optional()
      .describe('size of the weights, on disk or to download; ASR models only, not `auto`'),
    installed: z.boolean().describe('weights on disk'),
    loaded: z.boolean().describe('resident in memory'),
    fetching: z
      .looseObject({
        model: z.string().describe('the id of the weights, which may belong to a part that all models need'),
        phase: z.enum(['waiting', 'downloading', 'verifying', 'converting', 'quantizing']),
        done_bytes: z.int(),
        total_bytes: z.int().nullable(),
      })
      .optional()
      .describe('while weights are being prepared: those of this model; on `auto` the first of any'),
  })
  .meta({ id: 'ModelEntry' });

export const modelsListSchema = z
  .looseObject({ object: z.literal('list'), data: z.array(modelEntrySchema) })
  .meta({ id: 'ModelsList' });

const usage = z.looseObject({ type: z.literal('duration'), seconds: z.int().describe('rounded up') });

const logprobs = z
  .array(z.looseObject({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()) }))
  .optional();

const languages = z
  .array(z.looseObject({ code: z.string() }))
  .optional()
  .describe('for the model name `gpt-transcribe`: the language of most of the speech; empty when unsure');

export const jsonSchema = z
  .looseObject({ text: z.string(), usage, languages, logprobs })
  .meta({ id: 'Transcription' });

const speaker = z.string().describe('with diarize: a known name, or A, B, C ...');

/** What answers have that tell speakers apart. */
const spoken = {
  turns: z
    .array(z.looseObject({ speaker, start: sec('start'), end: sec('end') }))
    .optional()
    .describe('with diarize: who speaks when; turns may overlap'),
  speakers: z
    .array(z.looseObject({ speaker, seconds: sec('all turns') }))
    .optional()
    .describe('with diarize: in order of appearance'),
};

export const segmentSchema = z
  .looseObject({
    id: z.int(),
    seek: z.int().describe('start of the decoded window, in frames of 10 ms'),
    start: sec('start'),
    end: sec('end'),
    text: z.string(),
    tokens: z.array(z.int()).describe('the engine’s ids'),
    temperature: z.number(),
    avg_logprob: z.number(),
    compression_ratio: z.number(),
    no_speech_prob: z.number(),
    language: z.string().optional().describe('English name; only if the language was detected'),
    language_code: z.string().optional().describe('ISO 639; only if the language was detected'),
    emotion: z.string().optional().describe('task_type=rich'),
    event: z.string().optional().describe('task_type=rich'),
    speaker: speaker.optional(),
  })
  .meta({ id: 'Segment' });

const wordSchema = z.looseObject({
  word: z.string(),
  start: sec('start'),
  end: sec('end'),
  speaker: speaker.optional(),
  probability: z.number().min(0).max(1).describe('the mean of the tokens’ probabilities'),
});

/** The language and the model that were chosen. */
const chosen = {
  language_code: z.string().describe('ISO 639'),
  language_probability: z.number().min(0).max(1),
  model: z.string(),
  route: z.string().describe('`requested`, or `auto:` and the rule'),
};

export const verboseSchema = z
  .looseObject({
    task: z.enum(['transcribe', 'translate']),
    language: z.string().describe('lower-case English name'),
    duration: sec('audio'),
    text: z.string(),
    segments: z.array(segmentSchema).optional(),
    words: z.array(wordSchema).optional(),
    ...spoken,
    usage,
    ...chosen,
    track: z
      .int()
      .optional()
      .describe('the audio track that was heard, from 0; only if the file has several'),
    dropped: z
      .array(z.looseObject({ start: sec('start'), end: sec('end'), reason: z.string() }))
      .optional()
      .describe('what has no text: speech (`repetition`, `no_text`), or audio that is missing (`damaged`)'),
    logprobs,
  })
  .meta({ id: 'VerboseTranscription' });

export const alignmentSchema = z
  .looseObject({
    task: z.literal('align'),
    language: z.string().describe('lower-case English name'),
    duration: sec('audio'),
    text: z.string(),
    words: z.array(wordSchema).describe('all words of the text; one that is not spoken has zero length'),
    segments: z.array(z.looseObject({ id: z.int(), start: sec('start'), end: sec('end'), text: z.string() })),
    usage,
    ...chosen,
  })
  .meta({ id: 'Alignment' });

export const diarizedSegmentSchema = z
  .looseObject({
    type: z.literal('transcript.text.segment'),
    id: z.string().describe('seg_001, seg_002 ...'),
    start: sec('start'),
    end: sec('end'),
    text: z.string(),
    speaker,
  })
  .meta({ id: 'DiarizedSegment' });

export const diarizedSchema = z
  .looseObject({
    task: z.enum(['transcribe', 'translate']),
    duration: sec('audio'),
    text: z.string().describe('a line for each turn: `Name: text`'),
    segments: z.array(diarizedSegmentSchema),
    usage,
  })
  .meta({ id: 'DiarizedTranscription' });

export const whisperSchema = z
  .looseObject({
    text: z.string(),
    segments: z.array(segmentSchema).describe('each with its words if word_timestamps is on'),
    language: z.string().describe('ISO 639 code'),
  })
  .meta({ id: 'WhisperResult' });

export const detectedSchema = z
  .looseObject({
    detected_language: z.string().describe('lower-case English name'),
    language_code: z.string().describe('ISO 639 code'),
    confidence: z.number().min(0).max(1),
  })
  .meta({ id: 'DetectedLanguage' });

export const deltaSchema = z
  .looseObject({
    type: z.literal('transcript.text.delta'),
    delta: z.string().describe('text to append; the deltas together are the whole text'),
    segment_id: z.string(),
    start: sec('start'),
    end: sec('end'),
    logprobs,
  })
  .meta({ id: 'TranscriptTextDelta' });

export const doneSchema = z
  .looseObject({
    type: z.literal('transcript.text.done'),
    text: z.string(),
    usage,
    language: z.string(),
    duration: sec('audio'),
    model: z.string(),
    route: z.string(),
    segments: z.array(segmentSchema),
    ...spoken,
    languages,
    logprobs,
  })
  .meta({ id: 'TranscriptTextDone' });

const secret = {
  value: z.string().describe('the client secret; send it as a key'),
  expires_at: z.int().describe('unix seconds'),
};

/** The session in `session.created`, before it has begun. */
const session = z.looseObject({
  type: z.enum(['transcription', 'realtime']),
  object: z.enum(['realtime.transcription_session', 'realtime.session']),
  id: z.string(),
});

export const clientSecretSchema = z.looseObject({ ...secret, session }).meta({ id: 'ClientSecret' });

export const betaSessionSchema = z
  .looseObject({
    object: z.enum(['realtime.transcription_session', 'realtime.session']),
    id: z.string(),
    client_secret: z.looseObject(secret),
  })
  .meta({ id: 'BetaSession' });

export const warningSchema = z
  .looseObject({ type: z.literal('warning'), code: z.string(), message: z.string() })
  .meta({ id: 'StreamWarning' });

export const streamErrorSchema = z
  .looseObject({ type: z.literal('error'), error: errorEnvelopeSchema.shape.error })
  .meta({ id: 'StreamError' });
