/**
 * The settings of a transcription session as clients send and read them: the shape of OpenAI's API, and the flat one of
 * its beta. A field that is absent keeps its value, and null goes back to the default.
 */
import { z } from 'zod';
import { LIVE_RATES, type LiveFormat } from '../../audio/live/encodings.ts';
import { invalidValue } from '../../errors.ts';
import { type Aliases, isOpenAiModel } from '../../models/names.ts';
import type { LiveDeps, LiveSettings } from '../../transcription/live/live-session.ts';
import { DELAYS } from '../../transcription/live/stable-text.ts';
import { EAGERNESS } from '../../transcription/live/turn-detection.ts';
import { MOST_VALUES, oneOf, parseRequest } from '../../wire/request.ts';

const RATES = `Expected one of ${LIVE_RATES.join(', ')}`;
export const numeric = (min: number, max: number) => {
  const error = `Expected a number from ${min} to ${max}`;
  return z.number({ error }).min(min, error).max(max, error);
};

export const format = z.discriminatedUnion(
  'type',
  [
    z.object({
      type: z.literal('audio/pcm'),
      rate: z
        .literal([...LIVE_RATES], { error: RATES })
        .nullish()
        .transform((rate) => rate ?? 24_000),
    }),
    z.object({ type: z.literal('audio/pcmu') }),
    z.object({ type: z.literal('audio/pcma') }),
  ],
  { error: 'Expected {"type": "audio/pcm", "rate": 24000}, audio/pcmu or audio/pcma' },
);

/** A list without a limit would have an issue for each wrong item, which takes more memory than there is. */
const texts = z.array(z.string()).max(MOST_VALUES, `Expected at most ${MOST_VALUES} values`);

const transcription = z.object({
  model: z.string().nullish(),
  language: z.string().nullish(),
  languages: texts.nullish(),
  keywords: texts.nullish(),
  prompt: z.string().nullish(),
  delay: oneOf(DELAYS).nullish(),
  diarize: z.boolean().nullish(),
});

/** What an utterance does in a conversation. */
const inConversations = {
  create_response: z.boolean().nullish(),
  interrupt_response: z.boolean().nullish(),
};

const serverVad = z.object({
  type: z.literal('server_vad'),
  threshold: numeric(0, 1).nullish(),
  prefix_padding_ms: numeric(0, 5000).nullish(),
  silence_duration_ms: numeric(0, 10_000).nullish(),
  idle_timeout_ms: numeric(1, 600_000).nullish(),
  ...inConversations,
});
const semanticVad = z.object({
  type: z.literal('semantic_vad'),
  eagerness: oneOf(EAGERNESS).nullish(),
  ...inConversations,
});
const turnDetection = z.discriminatedUnion('type', [serverVad, semanticVad], {
  error: 'Expected server_vad or semantic_vad, or null where the client commits',
});
type TurnDetection = z.infer<typeof turnDetection>;

const noiseReduction = z.object({
  type: oneOf(['near_field', 'far_field']).nullish(),
  strength: z.number().nullish(),
});
const INCLUDE = 'item.input_audio_transcription.logprobs';

const input = z.object({
  format: format.nullish(),
  transcription: transcription.nullish(),
  noise_reduction: noiseReduction.nullish(),
  turn_detection: turnDetection.nullish(),
});

const type = oneOf(['transcription', 'realtime']).nullish();

/** `session.update`. What only conversations have, `conversation-settings.ts` reads. */
export const sessionUpdate = z.object({
  type,
  audio: z.object({ input: input.nullish() }).nullish(),
  include: texts.nullish(),
});

const BETA_NAMES = ['pcm16', 'g711_ulaw', 'g711_alaw'] as const;
/** The formats by their names in the beta. */
export const BETA_FORMATS: Readonly<Record<(typeof BETA_NAMES)[number], Format>> = {
  pcm16: { type: 'audio/pcm', rate: 24_000 },
  g711_ulaw: { type: 'audio/pcmu' },
  g711_alaw: { type: 'audio/pcma' },
};
export const betaNameOf = ({ type }: Format) => BETA_NAMES.find((name) => BETA_FORMATS[name].type === type);

/** `transcription_session.update`, and `session.update` of the beta. */
export const betaSessionUpdate = z.object({
  type,
  input_audio_format: oneOf(BETA_NAMES).nullish(),
  input_audio_transcription: transcription.nullish(),
  input_audio_noise_reduction: noiseReduction.nullish(),
  turn_detection: turnDetection.nullish(),
  include: texts.nullish(),
});

type Format = z.infer<typeof format>;
/** What a session is for. */
export type SessionKind = 'transcription' | 'realtime';
export type SessionUpdate = z.infer<typeof sessionUpdate>;

/** Everything that can be set; null stands for "not set", as on the wire. */
export interface SessionState {
  format: Format;
  transcription: z.infer<typeof transcription> | null;
  noiseReduction: z.infer<typeof noiseReduction> | null;
  /** Undefined until the client chooses a turn detection, and null if it commits turns itself. */
  turnDetection: TurnDetection | null | undefined;
  include: string[] | null;
}

/**
 * OpenAI's models without turn detection. Their clients leave the field away and commit, and take the error for a commit
 * of nothing as the end of the session.
 */
const COMMITTED_BY_CLIENTS = ['gpt-realtime-whisper', 'gpt-live-transcribe'];

/** The turn detection that holds, which depends on the model as long as the client has not set it. */
export function detectionOf(state: SessionState, aliases: Aliases): TurnDetection | null {
  if (state.turnDetection !== undefined) return state.turnDetection;
  return isOpenAiModel(COMMITTED_BY_CLIENTS, state.transcription?.model ?? '', aliases)
    ? null
    : { type: 'server_vad' };
}

/** The state of a new session. */
export const firstState = (model: string | undefined): SessionState => ({
  format: { type: 'audio/pcm', rate: 24_000 },
  transcription: model === undefined ? null : { model },
  noiseReduction: null,
  turnDetection: undefined,
  include: null,
});

/** The state of a new conversation, in which the server finds the turns whatever the model. */
export const firstHeard = (state: SessionState = firstState(undefined)): SessionState => ({
  ...state,
  turnDetection: state.turnDetection === undefined ? { type: 'server_vad' } : state.turnDetection,
});

/**
 * The state of a new connection. Many clients always name a model in the address, so the model that the client secret
 * was made with wins.
 */
export function startingState(model: string | undefined, ofSecret: SessionState | undefined): SessionState {
  if (ofSecret === undefined) return firstState(model);
  const { transcription } = ofSecret;
  if (model === undefined || transcription?.model) return ofSecret;
  return { ...ofSecret, transcription: { ...transcription, model } };
}

/** What is sent of a field, or else what it is now; null stands for what it is at first. */
export const or = <T>(sent: T | null | undefined, now: T, first: T): T =>
  sent === undefined ? now : (sent ?? first);

/** The state after an update. `transcription` is merged by its members, so that a second update may add a prompt. */
export function updated(state: SessionState, update: SessionUpdate): SessionState {
  const sent: z.infer<typeof input> = update.audio?.input ?? {};
  const first = firstState(undefined);
  const merged = sent.transcription ? { ...state.transcription, ...sent.transcription } : sent.transcription;
  const detection =
    sent.turn_detection && sent.turn_detection.type === state.turnDetection?.type
      ? { ...state.turnDetection, ...sent.turn_detection }
      : sent.turn_detection;
  return {
    format: or(sent.format, state.format, first.format),
    transcription: or(merged, state.transcription, null),
    noiseReduction: or(sent.noise_reduction, state.noiseReduction, null),
    turnDetection: or(detection, state.turnDetection, null),
    include: or(update.include, state.include, null),
  };
}

/** The beta's fields in the shape of the API. */
export function fromBeta(sent: z.infer<typeof betaSessionUpdate>): SessionUpdate {
  const { input_audio_format: name } = sent;
  return {
    audio: {
      input: {
        format: name ? BETA_FORMATS[name] : name,
        transcription: sent.input_audio_transcription,
        noise_reduction: sent.input_audio_noise_reduction,
        turn_detection: sent.turn_detection,
      },
    },
    include: sent.include,
  };
}

/** What holds of a turn detection where its client leaves it open. */
export const DETECTION = { silenceMs: 500, prefixMs: 300, threshold: 0.5 };

/** @throws GatewayError `invalid_value` that names the field */
export function toLiveSettings(state: SessionState, aliases: Aliases): LiveSettings {
  const { transcription, include } = state;
  const turnDetection = detectionOf(state, aliases);
  const voice = turnDetection?.type === 'server_vad' ? turnDetection : undefined;
  const { delay, diarize, ...fields } = transcription ?? {};
  const isUnknown = include?.find((name) => name !== INCLUDE);
  if (isUnknown !== undefined) throw invalidValue('include', isUnknown, `Expected ${INCLUDE}`, 'include');
  const asked = {
    ...fields,
    ...(typeof diarize === 'boolean' && { diarize: String(diarize) }),
    ...(include?.includes(INCLUDE) && { include: ['logprobs'] }),
  };
  const request = parseRequest(asked, aliases);
  return {
    request: {
      ...request,
      voiceActivity: {
        threshold: voice?.threshold ?? DETECTION.threshold,
        prefixPaddingMs: undefined, // the silence that is heard around speech is that of files
        silenceDurationMs: voice?.silence_duration_ms ?? DETECTION.silenceMs,
      },
    },
    turns: turnDetection && {
      prefixPaddingMs: voice?.prefix_padding_ms ?? DETECTION.prefixMs,
      ...(turnDetection.type === 'semantic_vad' && { eagerness: turnDetection.eagerness ?? 'auto' }),
    },
    delay: delay ?? 'medium',
  };
}

/** What tells what this server has. */
export interface LiveServing extends Pick<LiveDeps, 'transcription' | 'turnDetection'> {
  /** Whether speakers can be told apart without a download. */
  diarizes(): boolean;
}

const NO_TURN_DETECTION =
  'Its model is not on this server, where voxgate models pull turn-detection fetches it';

/** @throws GatewayError where this server does not have the model, or the one that detects turns */
export function requireServed(
  { request, turns }: LiveSettings,
  { transcription, turnDetection }: LiveServing,
  { beta }: { beta: boolean },
): void {
  transcription.route(request);
  if (!turns?.eagerness || turnDetection.isInstalled()) return;
  const field = `session.${beta ? '' : 'audio.input.'}turn_detection.type`;
  throw invalidValue(field, 'semantic_vad', NO_TURN_DETECTION);
}

export interface Warning {
  code: string;
  message: string;
}

/** What clients that ask for speakers, often by the name of a model alone, read where they get the text without them. */
const NO_SPEAKERS: Warning = {
  code: 'speakers_unavailable',
  message:
    'Speakers are not told apart: the model for that is not on this server, where voxgate models pull diarization fetches it',
};

/** The settings with what this server has of that which a session can do without, and what it has not. */
export function asServed(
  settings: LiveSettings,
  { diarizes }: LiveServing,
): { settings: LiveSettings; warnings: readonly Warning[] } {
  const { speakers } = settings.request;
  if (speakers === null) return { settings, warnings: [] };
  if (!diarizes()) return { settings, warnings: [NO_SPEAKERS] };
  return { settings: { ...settings, speakers }, warnings: [] };
}

/** The encoding and the rate of a format of the wire. */
export function audioFormat(format: Format): LiveFormat {
  if (format.type === 'audio/pcm') return { encoding: 'pcm16', rate: format.rate };
  return { encoding: format.type === 'audio/pcmu' ? 'mulaw' : 'alaw', rate: 8000 };
}

/** The format of the wire for an encoding and a rate. */
export function shownFormat({ encoding, rate }: LiveFormat) {
  if (encoding === 'pcm16') return { type: 'audio/pcm', rate } as const;
  return { type: encoding === 'mulaw' ? 'audio/pcmu' : 'audio/pcma' } as const;
}
