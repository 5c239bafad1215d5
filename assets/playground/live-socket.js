/** Speaks the protocol of live sessions with `/v1/realtime`, within limits of its own. */
import { openRealtime } from './realtime-socket.js';

/** The time for the last text after `finish`. */
const LAST_TEXT_MS = 20_000;

const TRANSCRIPTION = 'conversation.item.input_audio_transcription.';

/**
 * @param settings {model, language}; an empty language is detected
 * @param on ready(), partial(id, delta), final(id, text, latencyMs, span), failed(id, message), and once
 *   closed(why: string | null), where null means that all the text has come. A span is {startMs, endMs} of the sound
 *   that was sent
 */
export function openLive({ model, language }, on) {
  const socket = openRealtime('intent=transcription', {
    event(event) {
      take(event);
      if (isHandled && waiting.size === 0) socket.close();
    },
    closed: on.closed,
  });
  /** When speech ended, in ms of `performance.now`, by the id of its utterance. */
  const waiting = new Map();
  const endOfSpeech = new Map();
  /** The span of each utterance, by its id. */
  const spans = new Map();
  let sentMs = 0;
  let lastEndMs = 0;
  let pausedAt = null;
  let firstPieceAt = null;
  let silenceMs = 0;
  let finishedAt = null;
  let isHandled = false;

  function settle(id) {
    const endedAt = waiting.get(id);
    waiting.delete(id);
    return performance.now() - endedAt;
  }

  /** What was ended by hand lasts to the end of what was sent. */
  function settleSpan(id) {
    const { startMs = lastEndMs, endMs = sentMs } = spans.get(id) ?? {};
    spans.delete(id);
    lastEndMs = Math.max(startMs, endMs);
    return { startMs, endMs: lastEndMs };
  }

  function take({ type, item_id: id, ...event }) {
    switch (type) {
      case 'session.created':
        return configure();
      case 'session.updated':
        silenceMs = event.session.audio.input.turn_detection?.silence_duration_ms ?? 0;
        socket.inTime();
        return on.ready();
      case 'input_audio_buffer.speech_started':
        return spans.set(id, { startMs: event.audio_start_ms });
      case 'input_audio_buffer.speech_stopped':
        spans.set(id, { ...spans.get(id), endMs: event.audio_end_ms });
        return endOfSpeech.set(id, firstPieceAt + event.audio_end_ms - silenceMs);
      case 'input_audio_buffer.committed':
        spans.set(id, { endMs: sentMs, ...spans.get(id) });
        waiting.set(id, endOfSpeech.get(id) ?? finishedAt ?? performance.now());
        return endOfSpeech.delete(id);
      case `${TRANSCRIPTION}delta`:
        return on.partial(id, event.delta);
      case `${TRANSCRIPTION}completed`:
        return on.final(id, event.transcript, settle(id), settleSpan(id));
      case `${TRANSCRIPTION}failed`:
        settle(id);
        return on.failed(id, event.error.message);
      case 'input_audio_buffer.cleared':
        isHandled = true;
        return;
      case 'error':
        if (event.error.code !== 'input_audio_buffer_commit_empty') socket.close(event.error.message);
    }
  }

  function configure() {
    const transcription = language === '' ? { model } : { model, language };
    const format = { type: 'audio/pcm', rate: 24_000 };
    socket.send({
      type: 'session.update',
      session: { type: 'transcription', audio: { input: { format, transcription } } },
    });
  }

  return {
    /** @param bytes 16-bit PCM, mono, 24 kHz. @returns whether they were sent */
    append(bytes) {
      if (finishedAt !== null || pausedAt !== null || !socket.append(bytes)) return false;
      firstPieceAt ??= performance.now() - bytes.length / 48;
      sentMs += bytes.length / 48;
      return true;
    },
    /** Ends the current utterance, and sends nothing until `resume`. */
    pause() {
      if (pausedAt !== null) return;
      pausedAt = performance.now();
      socket.send({ type: 'input_audio_buffer.commit' });
    },
    resume() {
      // The sound that was sent has no gap.
      if (firstPieceAt !== null) firstPieceAt += performance.now() - pausedAt;
      pausedAt = null;
    },
    get sentMs() {
      return sentMs;
    },
    /** Ends the current utterance, and closes when its text has arrived. */
    finish() {
      if (finishedAt !== null) return;
      if (!socket.isOpen) return socket.close();
      finishedAt = performance.now();
      // Events are handled in order, so the answer to the second says that the first was handled.
      socket.send({ type: 'input_audio_buffer.commit' });
      socket.send({ type: 'input_audio_buffer.clear' });
      socket.within(LAST_TEXT_MS, 'The last text did not arrive within 20 s.');
    },
    /** Closes at once. */
    abort: socket.close,
  };
}
