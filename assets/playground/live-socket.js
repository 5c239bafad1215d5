/** Speaks the protocol of live sessions with `/v1/realtime`, within limits of its own. */
import { apiKey } from './request.js';

/** What may wait in the browser, which is about 16 s of audio. */
const MAX_UNSENT_BYTES = 1024 ** 2;
const CONNECT_MS = 10_000;
/** The time for the last text after `finish`. */
const LAST_TEXT_MS = 20_000;

const TRANSCRIPTION = 'conversation.item.input_audio_transcription.';

/** A subprotocol is a token, and not every key is one (RFC 6455, section 4.1): base64url without padding (RFC 4648). */
function toToken(key) {
  const base64 = btoa(String.fromCharCode(...new TextEncoder().encode(key)));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/**
 * @param settings {model, language}; an empty language is detected
 * @param on ready(), partial(id, delta), final(id, text, latencyMs), failed(id, message), and once
 *   closed(why: string | null), where null means that all the text has come
 */
export function openLive({ model, language }, on) {
  const key = apiKey();
  const protocols = ['realtime', ...(key === null ? [] : [`voxgate-api-key-base64url.${toToken(key)}`])];
  const address = new URL('v1/realtime?intent=transcription', location.href.replace(/^http/, 'ws'));
  const socket = new WebSocket(address, protocols);
  /** When speech ended, in ms of `performance.now`, by the id of its utterance. */
  const waiting = new Map();
  const endOfSpeech = new Map();
  let firstPieceAt = null;
  let silenceMs = 0;
  let finishedAt = null;
  let isHandled = false;
  let timer = setTimeout(() => over('The gateway did not open a live connection in 10 s.'), CONNECT_MS);
  let isOver = false;

  const send = (event) => socket.send(JSON.stringify(event));

  function over(why) {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    socket.close();
    on.closed(why);
  }

  function settle(id) {
    const endedAt = waiting.get(id);
    waiting.delete(id);
    return performance.now() - endedAt;
  }

  function take({ type, item_id: id, ...event }) {
    switch (type) {
      case 'session.created':
        return configure();
      case 'session.updated':
        silenceMs = event.session.audio.input.turn_detection?.silence_duration_ms ?? 0;
        clearTimeout(timer);
        return on.ready();
      case 'input_audio_buffer.speech_stopped':
        return endOfSpeech.set(id, firstPieceAt + event.audio_end_ms - silenceMs);
      case 'input_audio_buffer.committed':
        waiting.set(id, endOfSpeech.get(id) ?? finishedAt ?? performance.now());
        return endOfSpeech.delete(id);
      case `${TRANSCRIPTION}delta`:
        return on.partial(id, event.delta);
      case `${TRANSCRIPTION}completed`:
        return on.final(id, event.transcript, settle(id));
      case `${TRANSCRIPTION}failed`:
        settle(id);
        return on.failed(id, event.error.message);
      case 'input_audio_buffer.cleared':
        isHandled = true;
        return;
      case 'error':
        if (event.error.code !== 'input_audio_buffer_commit_empty') over(event.error.message);
    }
  }

  function configure() {
    const transcription = language === '' ? { model } : { model, language };
    const format = { type: 'audio/pcm', rate: 24_000 };
    send({
      type: 'session.update',
      session: { type: 'transcription', audio: { input: { format, transcription } } },
    });
  }

  socket.addEventListener('message', ({ data }) => {
    if (isOver) return;
    take(JSON.parse(data));
    if (isHandled && waiting.size === 0) over(null);
  });
  socket.addEventListener('close', ({ code, reason }) => {
    const why = reason === '' ? `code ${code}` : reason;
    over(`The gateway closed the live connection (${why}). Is it running?`);
  });

  return {
    /** @param bytes 16-bit PCM, mono, 24 kHz */
    append(bytes) {
      if (isOver || finishedAt !== null || socket.readyState !== WebSocket.OPEN) return;
      if (socket.bufferedAmount > MAX_UNSENT_BYTES)
        return over('The connection is too slow for live sound, so it was stopped.');
      firstPieceAt ??= performance.now() - bytes.length / 48;
      send({ type: 'input_audio_buffer.append', audio: btoa(String.fromCharCode(...bytes)) });
    },
    /** Ends what is said now, and closes when its text has come. */
    finish() {
      if (isOver || finishedAt !== null) return;
      if (socket.readyState !== WebSocket.OPEN) return over(null);
      finishedAt = performance.now();
      // Events are handled in order, so the answer to the second says that the first was handled.
      send({ type: 'input_audio_buffer.commit' });
      send({ type: 'input_audio_buffer.clear' });
      timer = setTimeout(() => over('The last text did not come within 20 s.'), LAST_TEXT_MS);
    },
    /** Closes at once. */
    abort: over,
  };
}
