/** The part of the audio that is still needed, addressed by positions in the whole audio, in samples. Pure. */

export type AudioWindow = ReturnType<typeof createAudioWindow>;

export function createAudioWindow() {
  let parts: { at: number; samples: Float32Array }[] = [];
  let length = 0;
  return {
    /** The samples that have come, with those that are forgotten. */
    get length() {
      return length;
    },
    /** The samples that are held. */
    get held() {
      return length - (parts[0]?.at ?? length);
    },
    append(samples: Float32Array): void {
      parts.push({ at: length, samples });
      length += samples.length;
    },
    /** Lets go of all samples before this one. */
    forget(before: number): void {
      parts = parts.filter((part) => part.at + part.samples.length > before);
      const first = parts[0];
      // A view would keep the memory of the whole part.
      if (first !== undefined && first.at < before)
        parts[0] = { at: before, samples: first.samples.slice(before - first.at) };
    },
    /** A copy of the samples from `start` up to `end`, or up to the last one. They must not be forgotten. */
    copy(start: number, end: number): Float32Array {
      const out = new Float32Array(Math.max(0, Math.min(end, length) - start));
      for (const { at, samples } of parts) {
        const from = Math.max(start, at);
        const to = Math.min(end, at + samples.length);
        if (from < to) out.set(samples.subarray(from - at, to - at), from - start);
      }
      return out;
    },
  };
}
