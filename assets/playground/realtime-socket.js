/** The connection to `/v1/realtime` that live text and conversations share, within limits of the page. */
import { apiKey } from './request.js';

/** What may wait in the browser, which is about 16 s of audio. */
const MAX_UNSENT_BYTES = 1024 ** 2;
const CONNECT_MS = 10_000;

/** A subprotocol is a token, and not every key is one (RFC 6455, section 4.1): base64url without padding (RFC 4648). */
function toToken(key) {
  const base64 = btoa(String.fromCharCode(...new TextEncoder().encode(key)));
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/**
 * @param query of the address, such as `intent=transcription`
 * @param on event(event), and once closed(why: string | null), where null means that the page closed it
 */
export function openRealtime(query, on) {
  const key = apiKey();
  const protocols = ['realtime', ...(key === null ? [] : [`voxgate-api-key-base64url.${toToken(key)}`])];
  const address = new URL(`v1/realtime?${query}`, location.href.replace(/^http/, 'ws'));
  const socket = new WebSocket(address, protocols);
  let isOver = false;
  let timer;

  function close(why = null) {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    socket.close();
    on.closed(why);
  }

  function within(ms, why) {
    clearTimeout(timer);
    timer = setTimeout(() => close(why), ms);
  }

  const send = (event) => socket.send(JSON.stringify(event));

  within(CONNECT_MS, 'The gateway did not open a live connection within 10 s.');
  socket.addEventListener('message', ({ data }) => {
    if (!isOver) on.event(JSON.parse(data));
  });
  socket.addEventListener('close', ({ code, reason }) => {
    const why = reason === '' ? `code ${code}` : reason;
    close(`The gateway closed the live connection (${why}). Is it running?`);
  });

  return {
    get isOpen() {
      return !isOver && socket.readyState === WebSocket.OPEN;
    },
    /** Does nothing on a connection that is not open. */
    send(event) {
      if (!isOver && socket.readyState === WebSocket.OPEN) send(event);
    },
    /** @param bytes 16-bit PCM, mono, 24 kHz. @returns whether they were sent */
    append(bytes) {
      if (isOver || socket.readyState !== WebSocket.OPEN) return false;
      if (socket.bufferedAmount > MAX_UNSENT_BYTES) {
        close('The connection is too slow for live audio, so it was closed.');
        return false;
      }
      send({ type: 'input_audio_buffer.append', audio: btoa(String.fromCharCode(...bytes)) });
      return true;
    },
    /** Closes after this time, unless `inTime` is called before. */
    within,
    inTime: () => clearTimeout(timer),
    /** Closes at once. */
    close,
  };
}
