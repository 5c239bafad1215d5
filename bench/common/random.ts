/**
 * This linear congruential generator (Numerical Recipes) gives 0..1, the same at every run; its high bits are good.
 */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
