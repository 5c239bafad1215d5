/**
 * The newest measurements of one category, for percentiles. They are in a ring of typed arrays whose memory is fixed
 * when it is made: 28 bytes a sample, however many requests come.
 */

const COLUMNS = ['latencyMs', 'slotWaitMs', 'rtf'] as const;
type Column = (typeof COLUMNS)[number];

/** The measurements of one request; NaN where there is none. */
export type Measurement = Record<Column, number>;

export interface Samples {
  /** @param second the second of this call; it must not fall from call to call */
  push(second: number, measured: Measurement): void;
  /**
   * The values measured in the seconds `from` to `to`, both included. The caller may reorder the array, and the next
   * call overwrites it.
   */
  values(column: Column, from: number, to: number): Float64Array;
  /** True when the ring was too small, so that samples of `from` or later have been overwritten. */
  truncatedSince(from: number): boolean;
}

/** @param capacity the number of samples that the ring holds */
export function createSamples(capacity: number): Samples {
  const seconds = new Int32Array(capacity);
  const columns = {
    latencyMs: new Float64Array(capacity),
    slotWaitMs: new Float64Array(capacity),
    rtf: new Float64Array(capacity),
  };
  const scratch = new Float64Array(capacity);
  let size = 0;
  let next = 0;
  let lastOverwritten = Number.NEGATIVE_INFINITY;

  /** The place of a sample in the ring. Index 0 is the oldest sample. */
  const slotOf = (index: number) => (next - size + index + capacity) % capacity;

  /** The index of the first sample of `second` or later, by binary search: the seconds never fall. */
  function firstSince(second: number): number {
    let low = 0;
    let high = size;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((seconds[slotOf(middle)] as number) < second) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return {
    push(second, measured) {
      if (size === capacity) lastOverwritten = seconds[next] as number;
      else size += 1;
      seconds[next] = second;
      for (const column of COLUMNS) columns[column][next] = measured[column];
      next = (next + 1) % capacity;
    },
    values(column, from, to) {
      const source = columns[column];
      const first = firstSince(from);
      let count = 0;
      let at = slotOf(first);
      for (let left = firstSince(to + 1) - first; left > 0; left -= 1) {
        const value = source[at] as number;
        if (Number.isFinite(value)) scratch[count++] = value;
        at = at + 1 === capacity ? 0 : at + 1;
      }
      return scratch.subarray(0, count);
    },
    truncatedSince: (from) => lastOverwritten >= from,
  };
}
