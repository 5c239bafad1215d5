/**
 * The settings of a conversation as clients send and read them: what a session of the type `realtime` has besides what
 * it hears. A field that is absent keeps its value, and null goes back to the default.
 */
import { z } from 'zod';
import type { ConversationSettings } from '../../conversation/conversation.ts';
import type { Retention } from '../../conversation/items.ts';
import type { AnswerSettings } from '../../conversation/response.ts';
import { BUDGETS } from '../../limits/budgets.ts';
import { checked } from '../checked.ts';
import { audioFormat, BETA_FORMATS, format, numeric, or, type SessionState } from './session-settings.ts';

const modalities = z
  .array(z.enum(['text', 'audio'], { error: 'Expected text or audio' }))
  .min(1, 'Expected ["text"] or ["audio"]')
  .max(2, 'Expected ["text"] or ["audio"]');

const functionTool = z.looseObject({
  type: z.literal('function', { error: 'Expected function: other tools are not served' }),
  name: z.string().min(1).max(256),
  description: z.string().nullish(),
  parameters: z.unknown().optional(),
});
const tools = z
  .array(functionTool)
  .max(BUDGETS.conversation.tools, `Expected at most ${BUDGETS.conversation.tools}`);
const toolChoice = z.union(
  [z.enum(['auto', 'none', 'required']), z.object({ type: z.literal('function'), name: z.string() })],
  { error: 'Expected auto, none, required or {"type": "function", "name": "…"}' },
);
const MOST_TOKENS = 1_000_000;
const maxTokens = z.union([z.literal('inf'), z.int().min(1).max(MOST_TOKENS)], {
  error: `Expected inf, or a whole number from 1 to ${MOST_TOKENS}`,
});
const voice = z.union([z.string(), z.object({ id: z.string() }).transform((named) => named.id)], {
  error: 'Expected the name of a voice',
});

/** The audio of answers. */
const output = z.object({
  format: format.nullish(),
  voice: voice.nullish(),
  speed: numeric(0.25, 4).nullish(),
});

const answerFields = {
  output_modalities: modalities.nullish(),
  instructions: z.string().nullish(),
  tools: tools.nullish(),
  tool_choice: toolChoice.nullish(),
  max_output_tokens: maxTokens.nullish(),
};

const truncation = z.union(
  [
    z.enum(['auto', 'disabled']),
    z.object({
      type: z.literal('retention_ratio'),
      retention_ratio: numeric(0, 1),
      token_limits: z.object({ post_instructions: z.int().min(1).nullish() }).nullish(),
    }),
  ],
  { error: 'Expected auto, disabled or {"type": "retention_ratio", "retention_ratio": 0.8}' },
);

/** Members of `session` that a conversation reads besides those of `audio.input`; others are let pass. */
const conversationUpdate = z.object({
  ...answerFields,
  model: z.string().nullish(),
  audio: z.object({ output: output.nullish() }).nullish(),
  tracing: z.unknown().optional(),
  truncation: truncation.nullish(),
  prompt: z.unknown().optional(),
});

/** How a session without a voice of its own names the one that the speech upstream chooses. */
export const DEFAULT_VOICE = 'default';

const METADATA = { most: 16, name: 64, value: 512 };

export const responseFields = z.object({
  ...answerFields,
  audio: z.object({ output: output.nullish() }).nullish(),
  conversation: z.string().nullish(),
  metadata: z
    .record(z.string().max(METADATA.name), z.string().max(METADATA.value))
    .refine((pairs) => Object.keys(pairs).length <= METADATA.most, `Expected at most ${METADATA.most} pairs`)
    .nullish(),
  input: z.array(z.unknown()).max(BUDGETS.conversation.items).nullish(),
});

type Answer = Pick<z.infer<typeof responseFields>, keyof typeof answerFields | 'audio'>;

/** Everything of a conversation that can be set. */
export interface ConversationState {
  model: string | null;
  modalities: 'audio' | 'text';
  instructions: string;
  tools: z.infer<typeof tools>;
  toolChoice: z.infer<typeof toolChoice>;
  maxTokens: number | 'inf';
  format: z.infer<typeof format>;
  voice: string | null;
  speed: number;
  tracing: unknown;
  truncation: z.infer<typeof truncation>;
  prompt: unknown;
}

/** @param model the one of the address */
export const firstConversation = (model: string | null): ConversationState => ({
  model,
  modalities: 'audio',
  instructions: '',
  tools: [],
  toolChoice: 'auto',
  maxTokens: 'inf',
  format: { type: 'audio/pcm', rate: 24_000 },
  voice: null,
  speed: 1,
  tracing: null,
  truncation: 'auto',
  prompt: null,
});

/** What a session begins with. */
export interface Beginning {
  heard: SessionState;
  /** Null where it only transcribes. */
  conversation: ConversationState | null;
}

/**
 * The state after an update.
 * @param beta whether `session` has the flat shape of the beta
 * @throws GatewayError `invalid_value` that names the field
 */
export function updatedConversation(
  state: ConversationState,
  { session, beta }: { session: unknown; beta: boolean },
): ConversationState {
  const sent = checked(conversationUpdate, beta ? fromBetaConversation(session) : session);
  const first = firstConversation(state.model);
  return {
    ...withAnswer(state, sent, first),
    model: sent.model ?? state.model,
    tracing: or(sent.tracing, state.tracing, first.tracing),
    truncation: or(sent.truncation, state.truncation, first.truncation),
    prompt: or(sent.prompt, state.prompt, first.prompt),
  };
}

/** The state with what is sent of how to answer. What is null is as in `first`. */
function withAnswer(state: ConversationState, sent: Answer, first: ConversationState): ConversationState {
  const { format: asked, voice: named, speed } = sent.audio?.output ?? {};
  const modality = sent.output_modalities && (sent.output_modalities.includes('audio') ? 'audio' : 'text');
  return {
    ...state,
    modalities: or(modality, state.modalities, first.modalities),
    instructions: or(sent.instructions, state.instructions, first.instructions),
    tools: or(sent.tools, state.tools, first.tools),
    toolChoice: or(sent.tool_choice, state.toolChoice, first.toolChoice),
    maxTokens: or(sent.max_output_tokens, state.maxTokens, first.maxTokens),
    format: or(asked, state.format, first.format),
    voice: or(named, state.voice, first.voice),
    speed: or(speed, state.speed, first.speed),
  };
}

/** How a response is made that is asked for with these fields; what is null is as in the session. */
export function answerFor(state: ConversationState, sent: Answer): AnswerSettings {
  const asked = withAnswer(state, sent, state);
  const { toolChoice: choice } = asked;
  return {
    model: asked.model ?? undefined,
    instructions: asked.instructions,
    tools: asked.tools.map(({ name, description, parameters }) => ({
      name,
      ...(description && { description }),
      ...(parameters !== undefined && parameters !== null && { parameters }),
    })),
    toolChoice: typeof choice === 'string' ? choice : { name: choice.name },
    maxTokens: asked.maxTokens === 'inf' ? null : asked.maxTokens,
    isSpoken: asked.modalities === 'audio',
    voice: asked.voice ?? undefined,
    speed: asked.speed,
    format: audioFormat(asked.format),
  };
}

export function toConversationSettings(
  state: ConversationState,
  { turnDetection }: SessionState,
): ConversationSettings {
  return {
    ...answerFor(state, {}),
    answersUtterances: turnDetection?.create_response ?? true,
    isInterruptible: turnDetection?.interrupt_response ?? true,
    idleMs: (turnDetection?.type === 'server_vad' && turnDetection.idle_timeout_ms) || null,
    retention: toRetention(state),
  };
}

function toRetention({ truncation: sent }: ConversationState): Retention | null {
  if (sent === 'disabled') return null;
  if (sent === 'auto') return { ratio: 1, tokens: null };
  return { ratio: sent.retention_ratio, tokens: sent.token_limits?.post_instructions ?? null };
}

/** The beta's fields in the shape of the API. @param session as it was sent */
function fromBetaConversation(session: unknown): object {
  const sent = Object(session) as Record<string, unknown>;
  const formats: Readonly<Record<string, object>> = BETA_FORMATS;
  const name = sent.output_audio_format;
  const output = {
    ...(name !== undefined && { format: typeof name === 'string' ? formats[name] : name }),
    ...('voice' in sent && { voice: sent.voice }),
    ...('speed' in sent && { speed: sent.speed }),
  };
  const renamed = { modalities: 'output_modalities', max_response_output_tokens: 'max_output_tokens' };
  const same = ['instructions', 'tools', 'tool_choice', 'model'];
  const entries = [...Object.entries(renamed), ...same.map((each) => [each, each] as const)];
  return {
    ...Object.fromEntries(entries.filter(([from]) => from in sent).map(([from, to]) => [to, sent[from]])),
    audio: { output },
  };
}
