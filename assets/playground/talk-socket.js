/** Holds a conversation over `/v1/realtime` (OpenAI's API reference, Realtime), and reports it as a page shows it. */
import { openRealtime } from './realtime-socket.js';

const TRANSCRIPTION = 'conversation.item.input_audio_transcription.';
const FORMAT = { type: 'audio/pcm', rate: 24_000 };
const NOTHING_SAID = 'input_audio_buffer_commit_empty';
/** The error for an interruption that came when the answer had already ended. */
const TOO_LATE = 'response_cancel_not_active';

/**
 * @param settings {model, voice, instructions, tools, isPushToTalk, before: messages {role, content} of an earlier session}
 * @param runTool (name, argumentsAsJson) => string
 * @param on ready(), speaking(), spoken(endOfSpeech, in ms of `performance.now`), hearing(delta), heard(text),
 *   answering(), text(delta), audio(bytes, itemId), audioDone(), tool(name, argumentsAsJson, output),
 *   answered({status, reason, error}, goesOn), problem(message), and once closed(why: string | null)
 */
export function openTalk(settings, runTool, on) {
  const socket = openRealtime(new URLSearchParams({ model: settings.model }), {
    event: take,
    closed: on.closed,
  });
  let firstPieceAt = null;
  let silenceMs = 0;
  let isReady = false;
  let isAnswering = false;
  /** After a commit by hand, whose text asks for an answer. */
  let isOwed = false;
  let hasCalled = false;

  function take({ type, ...event }) {
    switch (type) {
      case 'session.created':
        return configure();
      case 'session.updated':
        silenceMs = event.session.audio.input.turn_detection?.silence_duration_ms ?? 0;
        socket.inTime();
        if (!isReady) on.ready();
        isReady = true;
        return;
      case 'input_audio_buffer.speech_started':
        return on.speaking();
      case 'input_audio_buffer.speech_stopped':
        return on.spoken(firstPieceAt + event.audio_end_ms - silenceMs);
      case `${TRANSCRIPTION}delta`:
        return on.hearing(event.delta);
      case `${TRANSCRIPTION}completed`:
        return heard(event.transcript.trim());
      case `${TRANSCRIPTION}failed`:
        heard('');
        return on.problem(event.error.message);
      case 'response.created':
        isAnswering = true;
        return on.answering();
      case 'response.output_audio_transcript.delta':
        return on.text(event.delta);
      case 'response.output_audio.delta':
        return on.audio(
          Uint8Array.from(atob(event.delta), (char) => char.charCodeAt(0)),
          event.item_id,
        );
      case 'response.output_audio.done':
        return on.audioDone();
      case 'response.function_call_arguments.done':
        return call(event);
      case 'response.done':
        return answered(event.response);
      case 'error':
        if (event.error.code === NOTHING_SAID) heard('');
        else if (event.error.code !== TOO_LATE) on.problem(event.error.message);
    }
  }

  function heard(text) {
    on.heard(text);
    if (isOwed && text !== '') socket.send({ type: 'response.create' });
    isOwed = false;
  }

  function configure() {
    const { model, voice, instructions, tools, isPushToTalk, before } = settings;
    socket.send({
      type: 'session.update',
      session: {
        type: 'realtime',
        model,
        instructions,
        tools,
        audio: {
          input: {
            format: FORMAT,
            transcription: { model: 'auto' },
            turn_detection: isPushToTalk ? null : { type: 'server_vad' },
          },
          output: { format: FORMAT, ...(voice !== '' && { voice }) },
        },
      },
    });
    for (const { role, content } of before) {
      const type = role === 'user' ? 'input_text' : 'output_text';
      addItem({ type: 'message', role, content: [{ type, text: content }] });
    }
  }

  const addItem = (item) => socket.send({ type: 'conversation.item.create', item });

  function call({ name, arguments: args, call_id }) {
    const output = runTool(name, args);
    on.tool(name, args, output);
    addItem({ type: 'function_call_output', call_id, output });
    hasCalled = true;
  }

  function answered({ status, status_details: details }) {
    isAnswering = false;
    const goesOn = hasCalled && status === 'completed';
    hasCalled = false;
    on.answered({ status, reason: details?.reason, error: details?.error }, goesOn);
    if (goesOn) socket.send({ type: 'response.create' });
  }

  return {
    /** @param bytes 16-bit PCM, mono, 24 kHz */
    append(bytes) {
      if (socket.append(bytes)) firstPieceAt ??= performance.now() - bytes.length / 48;
    },
    /** Ends what is said where the visitor says when, and asks for the answer. */
    commit() {
      isOwed = true;
      socket.send({ type: 'input_audio_buffer.commit' });
    },
    /** Ends the answer that is being written. */
    cancel() {
      if (isAnswering) socket.send({ type: 'response.cancel' });
    },
    /** Says what was heard of an answer, so that the model does not take the rest for heard. */
    truncate({ itemId, ms }) {
      socket.send({
        type: 'conversation.item.truncate',
        item_id: itemId,
        content_index: 0,
        audio_end_ms: Math.round(ms),
      });
    },
    close: socket.close,
  };
}
