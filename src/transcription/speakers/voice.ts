/** Voices as directions: embeddings of unit length, sums of them, and the cosine between two. Pure. */

/** What one local speaker of one window sounds like. */
export interface Voice {
  /** The embedding, of unit length. */
  direction: Float32Array;
  /**
   * The seconds of speech that it adds to what is known of the speaker. Windows overlap, so that it is less than what is
   * heard in the window.
   */
  weight: number;
}

/** A voice of one local speaker of a window. */
export interface LocalVoice extends Voice {
  /** What the speaker says alone in the window, in seconds. */
  aloneSec: number;
  /** What the speaker says alone, in parts between pauses; without those that are too short. */
  pieces: readonly Piece[];
}

/** What one voice says in one go. Its weight is the seconds of its frames. */
export interface Piece extends Voice {
  /** Frames of the window, the second one exclusive. */
  from: number;
  to: number;
}

/** A group of voices that count as one. */
export interface Centroid extends Voice {
  /** The weighted sum of the directions; `direction` is its direction. */
  sum: Float32Array;
  /** The window of each voice, by its first frame, in order. */
  windows: readonly number[];
}

/** A vector of unit length; one that is zero or not finite becomes zero, which is like no voice. */
export function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
  return length > 0 && Number.isFinite(length)
    ? vector.map((x) => x / length)
    : new Float32Array(vector.length);
}

/** The cosine between two vectors of unit length, -1 to 1. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += (a[i] ?? 0) * (b[i] ?? 0);
  return sum;
}

/** @param window the first frame of the window in which the voice is heard */
export function centroidOf({ direction, weight }: Voice, window: number): Centroid {
  const sum = direction.map((x) => x * weight);
  return { sum, weight, windows: [window], direction: unit(sum) };
}

/** The centroid of both groups. */
export function joined(a: Centroid, b: Centroid): Centroid {
  const sum = a.sum.map((x, i) => x + (b.sum[i] ?? 0));
  const windows = [...a.windows, ...b.windows].sort((x, y) => x - y);
  return { sum, weight: a.weight + b.weight, windows, direction: unit(sum) };
}

/** The share (0 to 1) of the voices of the smaller group that are heard in one window with a voice of the other. */
export function together(a: Centroid, b: Centroid): number {
  let common = 0;
  for (let i = 0, j = 0; i < a.windows.length && j < b.windows.length; ) {
    const [x, y] = [a.windows[i] ?? 0, b.windows[j] ?? 0];
    if (x === y) common += 1;
    if (x <= y) i += 1;
    if (y <= x) j += 1;
  }
  return common / Math.max(1, Math.min(a.windows.length, b.windows.length));
}
