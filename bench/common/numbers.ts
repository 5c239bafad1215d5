/** Statistics of the benches, and how their tables write numbers. */

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  return ((sorted[Math.ceil(half) - 1] ?? Number.NaN) + (sorted[Math.floor(half)] ?? Number.NaN)) / 2;
}

/** Takes the nearest rank. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)] ?? Number.NaN;
}

export function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}

export const total = (values: readonly number[]) => sumOf(values, (value) => value);

/** Nothing for a number that is not known. */
export function known(value: number, digits: number): string {
  return Number.isNaN(value) ? '' : value.toFixed(digits);
}

/** Nothing for a share that is not known. */
export function percent(share: number): string {
  return Number.isNaN(share) ? '' : `${(share * 100).toFixed(1)} %`;
}
