/** Plays wav and bare samples while they arrive, with Web Audio. */
import { bareFormat, readWavHeader, wavHeader } from './pcm.js';

/** How far ahead audio is decoded and handed to Web Audio; the rest waits undecoded. */
const AHEAD_SEC = 5;
/** The delay before sound starts, or resumes after a gap, so that the next piece arrives in time. */
const LEAD_SEC = 0.15;
/** A browser that lets no sound begin by itself leaves the clock of the context standing. */
const MUTE_MS = 1000;
/** Samples are decoded in pieces of this size at most. */
const PIECE_BYTES = 64 * 1024;

/** @returns null for anything but wav and bare samples */
export function createSamples(headers, kept, on) {
  const bare = bareFormat(headers);
  if (bare === null && !/^audio\/(x-|vnd\.)?wave?\b/i.test(headers.get('Content-Type') ?? '')) return null;
  /** `{rate, channels, at, size}` once it is known. */
  let format = bare && { ...bare, at: 0, size: Infinity };
  let isUnreadable = false;
  let rest = new Uint8Array();
  let left = 0;
  let player = null;

  function next() {
    const frame = format.channels * 2;
    while (rest.length < frame) {
      const part = kept.next();
      if (part === undefined || left < frame) return null;
      kept.take();
      rest = joined(rest, part);
    }
    const most = Math.min(rest.length, left, PIECE_BYTES);
    const piece = rest.subarray(0, most - (most % frame));
    rest = rest.subarray(piece.length);
    left -= piece.length;
    return piece.length > 0 ? piece : null;
  }

  function begin() {
    for (let part = kept.next(); format === null && part !== undefined; part = kept.next()) {
      kept.take();
      rest = joined(rest, part);
      const read = readWavHeader(rest);
      isUnreadable ||= read === null;
      if (isUnreadable) return;
      format = read ?? null;
    }
    if (format === null) return;
    rest = rest.subarray(format.at);
    left = format.size;
    try {
      player = createPlayer(format, next, on);
    } catch {
      isUnreadable = true; // a rate that Web Audio does not have
    }
  }

  function more() {
    if (player === null && !isUnreadable) begin();
    player?.more();
  }

  /** The header of a stream does not know its end, so players could not seek. */
  function whole() {
    const blob = kept.blob();
    if (format === null || isUnreadable) return blob;
    const size = Math.min(format.size, kept.size - format.at);
    const samples = blob.slice(format.at, format.at + size);
    return new Blob([wavHeader(format, size), samples], { type: 'audio/wav' });
  }

  return {
    more,
    end() {
      more();
      player?.end();
    },
    stop: () => player?.stop(),
    toggle: () => player?.toggle(),
    over: async () => (player === null ? false : await player.over),
    file: bare === null ? whole : kept.blob,
    whole,
  };
}

/**
 * @param next () => Uint8Array | null, the next samples in whole frames, or null where none has arrived yet
 * @returns {more, end, stop, toggle, playedSec, over}; `over` resolves to whether the browser let the sound begin
 */
export function createPlayer(format, next, { onFirst, onPause }) {
  const context = new AudioContext({ sampleRate: format.rate });
  const over = Promise.withResolvers();
  /** When each piece that is scheduled begins, by its source. */
  const playing = new Map();
  let until = 0;
  let playedSec = 0;
  let isWhole = false;

  function finish(wasHeard) {
    clearTimeout(mute);
    if (context.state !== 'closed') context.close();
    over.resolve(wasHeard);
  }

  function schedule(samples) {
    const source = context.createBufferSource();
    source.buffer = toBuffer(context, samples, format);
    source.connect(context.destination);
    if (until <= context.currentTime) until = context.currentTime + LEAD_SEC;
    source.start(until);
    playing.set(source, until);
    until += source.buffer.duration;
    source.onended = () => {
      playing.delete(source);
      playedSec += source.buffer.duration;
      more();
    };
  }

  function more() {
    if (context.state !== 'running') return;
    while (until - context.currentTime < AHEAD_SEC) {
      const samples = next();
      if (samples === null) break;
      if (until === 0) onFirst(performance.now() + LEAD_SEC * 1000);
      schedule(samples);
    }
    if (isWhole && playing.size === 0) finish(true);
  }

  const mute = setTimeout(() => {
    if (context.state !== 'running') finish(false);
  }, MUTE_MS);
  context.onstatechange = () => {
    if (context.state === 'running') clearTimeout(mute);
    more();
  };
  context.resume().catch(() => undefined);

  return {
    more,
    end() {
      isWhole = true;
      more();
    },
    stop: () => finish(true),
    async toggle() {
      const isPaused = context.state === 'running';
      await (isPaused ? context.suspend() : context.resume());
      onPause(isPaused);
    },
    /** How much has been heard. */
    get playedSec() {
      const now = context.currentTime;
      let sec = playedSec;
      for (const [{ buffer }, at] of playing) sec += Math.min(buffer.duration, Math.max(0, now - at));
      return sec;
    },
    over: over.promise,
  };
}

function toBuffer(context, bytes, { rate, channels }) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const frames = bytes.byteLength / 2 / channels;
  const buffer = context.createBuffer(channels, frames, rate);
  for (let channel = 0; channel < channels; channel++) {
    const samples = buffer.getChannelData(channel);
    for (let i = 0; i < frames; i++) samples[i] = view.getInt16((i * channels + channel) * 2, true) / 32_768;
  }
  return buffer;
}

function joined(a, b) {
  if (a.length === 0) return b;
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
