/** Chance that comes out the same at every run. */
import { createHash } from 'node:crypto';

/** Uniform values, 0..1. */
export type Random = () => number;

/**
 * This linear congruential generator (Numerical Recipes) gives 0..1, the same at every run; its high bits are good.
 */
export function seededRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

export const seedOf = (name: string) => createHash('sha256').update(name).digest().readUInt32LE(0);

export const between = (random: Random, low: number, high: number) => low + (high - low) * random();

export function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((value) => ({ value, key: random() }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ value }) => value);
}
