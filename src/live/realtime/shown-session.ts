/** A session as clients read it: in the shape of OpenAI's API, and in the flat one of its beta. */
import type { Aliases } from '../../models/names.ts';
import { type ConversationState, DEFAULT_VOICE } from './conversation-settings.ts';
import { betaNameOf, DETECTION, detectionOf, type SessionState, type Warning } from './session-settings.ts';

interface Shown {
  id: string;
  /** Unix seconds; absent for a session that has not begun. */
  expiresAt?: number;
  /**
   * They stand in the session, because some clients end theirs at an event that they do not know, and none does at such
   * a member.
   */
  warnings: readonly Warning[];
  aliases: Aliases;
  beta: boolean;
}

/** @param conversation null for a session that only transcribes */
export function shownSession(
  heard: SessionState,
  conversation: ConversationState | null,
  { id, expiresAt, warnings, aliases, beta }: Shown,
): object {
  const detection = shownDetection(heard, conversation !== null, aliases);
  const common = {
    object: conversation ? 'realtime.session' : 'realtime.transcription_session',
    id,
    ...(expiresAt !== undefined && { expires_at: expiresAt }),
    include: heard.include,
    ...(warnings.length > 0 && { warnings }),
  };
  if (beta)
    return {
      ...common,
      ...(conversation && shownBetaConversation(conversation)),
      input_audio_format: betaNameOf(heard.format),
      input_audio_transcription: heard.transcription,
      input_audio_noise_reduction: heard.noiseReduction,
      turn_detection: detection,
    };
  const input = {
    format: heard.format,
    transcription: heard.transcription,
    noise_reduction: heard.noiseReduction,
    turn_detection: detection,
  };
  if (conversation === null) return { type: 'transcription', ...common, audio: { input } };
  const { format, voice, speed } = conversation;
  const output = { format, voice: voice ?? DEFAULT_VOICE, speed };
  return { type: 'realtime', ...common, ...shownConversation(conversation), audio: { input, output } };
}

function shownDetection(heard: SessionState, answers: boolean, aliases: Aliases) {
  const detection = detectionOf(heard, aliases);
  if (detection === null) return null;
  const answering = answers && {
    create_response: detection.create_response ?? true,
    interrupt_response: detection.interrupt_response ?? true,
  };
  if (detection.type === 'semantic_vad')
    return { type: detection.type, eagerness: detection.eagerness ?? 'auto', ...answering };
  return {
    type: detection.type,
    threshold: detection.threshold ?? DETECTION.threshold,
    prefix_padding_ms: detection.prefix_padding_ms ?? DETECTION.prefixMs,
    silence_duration_ms: detection.silence_duration_ms ?? DETECTION.silenceMs,
    ...(answers && { idle_timeout_ms: detection.idle_timeout_ms ?? null }),
    ...answering,
  };
}

const shownConversation = (state: ConversationState) => ({
  model: state.model ?? 'auto',
  output_modalities: [state.modalities],
  instructions: state.instructions,
  tools: state.tools,
  tool_choice: state.toolChoice,
  max_output_tokens: state.maxTokens,
  tracing: state.tracing,
  truncation: state.truncation,
  prompt: state.prompt,
});

const shownBetaConversation = (state: ConversationState) => ({
  model: state.model ?? 'auto',
  modalities: state.modalities === 'audio' ? ['audio', 'text'] : ['text'],
  instructions: state.instructions,
  voice: state.voice ?? DEFAULT_VOICE,
  output_audio_format: betaNameOf(state.format),
  tools: state.tools,
  tool_choice: state.toolChoice,
  temperature: 0.8, // what every session of OpenAI's beta has
  max_response_output_tokens: state.maxTokens,
});
