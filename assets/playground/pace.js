/** How fast an answer came. */

/** Takes the time of an answer. */
export function createPace() {
  const askedAt = performance.now();
  let firstAt = null;
  let lastAt = askedAt;
  let pieces = 0;
  let told = null;
  return {
    piece() {
      lastAt = performance.now();
      firstAt ??= lastAt;
      pieces += 1;
    },
    usage(usage) {
      if (Number.isInteger(usage?.completion_tokens)) told = usage.completion_tokens;
    },
    /** Where the daemon does not count its tokens, each piece of the answer is taken for one. */
    describe() {
      if (firstAt === null) return '';
      const about = told === null ? 'about ' : '';
      const tokens = told ?? pieces;
      const sec = (lastAt - firstAt) / 1000;
      const parts = [`${about}${tokens} ${tokens === 1 ? 'token' : 'tokens'}`];
      // Too few pieces, or pieces that arrived at once, give no meaningful rate.
      if (pieces > 2 && sec > 0.05) parts.push(`${about}${toThree((tokens - 1) / sec)} tokens/s`);
      parts.push(`first after ${toThree((firstAt - askedAt) / 1000)} s`);
      return parts.join(' · ');
    },
  };
}

const toThree = (value) => (value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(2))));
