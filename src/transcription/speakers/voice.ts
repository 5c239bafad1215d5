/** Voices as directions: embeddings of unit length, sums of them, and the cosine between two. Pure. */

/** What one local speaker of one window sounds like. */
export interface Voice {
  /** The embedding, of unit length. */
  direction: Float32Array;
  /** The seconds of speech that it is made of. */
  weight: number;
}

/** A group of voices that count as one. */
export interface Centroid extends Voice {
  /** The weighted sum of the directions; `direction` is its direction. */
  sum: Float32Array;
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

export function centroidOf({ direction, weight }: Voice): Centroid {
  return withSum(
    direction.map((x) => x * weight),
    weight,
  );
}

/** The centroid of both groups. */
export function joined(a: Centroid, b: Centroid): Centroid {
  return withSum(
    a.sum.map((x, i) => x + (b.sum[i] ?? 0)),
    a.weight + b.weight,
  );
}

function withSum(sum: Float32Array, weight: number): Centroid {
  return { sum, weight, direction: unit(sum) };
}
