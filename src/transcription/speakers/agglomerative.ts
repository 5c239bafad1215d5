/**
 * Agglomerative clustering by cosine with centroid linkage: the two groups whose centroids are most alike become one,
 * again and again. The whole order of merges is kept, so that one run serves every number of speakers. Pure.
 *
 * Memory grows with the square of the number of points, and time with a little more. The caller bounds the number.
 */
import { type Centroid, cosine, joined, together } from './voice.ts';

/**
 * Two voices of one window are mostly two persons, so that groups which are heard together are so much less alike. It is
 * no more than that because the segmentation sometimes takes one person for two.
 */
export const TOGETHER = 0.3;

/** The cosine between the centroids, less what being heard together takes from it. */
export function similarityOf(a: Centroid, b: Centroid): number {
  return cosine(a.direction, b.direction) - TOGETHER * together(a, b);
}

export interface Merge {
  /** The two groups by the index of their first point; the group is `into` afterwards. */
  into: number;
  from: number;
  /** See `similarityOf`. */
  similarity: number;
}

/** @param until ends the merging: it gets the number of groups that are left */
export function mergesOf(
  points: readonly Centroid[],
  until: (groups: number) => boolean = () => false,
): { merges: Merge[]; groups: Centroid[] } {
  const n = points.length;
  const groups: (Centroid | null)[] = [...points];
  const similarities = new Float32Array(n * n);
  const nearest = new Int32Array(n).fill(-1); // of the later points, so that a pair is kept once
  const at = (i: number, j: number) => similarities[Math.min(i, j) * n + Math.max(i, j)] ?? -1;

  function compare(i: number, j: number): void {
    const [a, b] = [groups[i], groups[j]];
    if (a && b) similarities[Math.min(i, j) * n + Math.max(i, j)] = similarityOf(a, b);
  }
  function findNearest(i: number): void {
    nearest[i] = -1;
    for (let j = i + 1; j < n; j += 1) {
      if (groups[j] !== null && (nearest[i] === -1 || at(i, j) > at(i, nearest[i] ?? 0))) nearest[i] = j;
    }
  }

  for (let i = 0; i < n; i += 1) {
    for (let j = i + 1; j < n; j += 1) compare(i, j);
    findNearest(i);
  }
  const merges: Merge[] = [];
  for (let left = n; left > 1; left -= 1) {
    let into = -1;
    for (let i = 0; i < n; i += 1) {
      const other = nearest[i] ?? -1;
      if (groups[i] === null || other < 0) continue;
      if (into === -1 || at(i, other) > at(into, nearest[into] ?? 0)) into = i;
    }
    const from = nearest[into] ?? -1;
    const [a, b] = [groups[into], groups[from]];
    if (!a || !b || until(left)) break;
    merges.push({ into, from, similarity: at(into, from) });
    groups[into] = joined(a, b);
    groups[from] = null;
    for (let j = 0; j < n; j += 1) if (j !== into && groups[j] !== null) compare(into, j);
    findNearest(into);
    for (let i = 0; i < into; i += 1) {
      const other = nearest[i] ?? -1;
      if (groups[i] === null) continue;
      if (other === into || other === from) findNearest(i);
      else if (at(i, into) > at(i, other)) nearest[i] = into;
    }
    for (let i = into + 1; i < from; i += 1) if (groups[i] !== null && nearest[i] === from) findNearest(i);
  }
  return { merges, groups: groups.filter((group) => group !== null) };
}

/** The group of each point when groups that are less alike than `threshold` stay apart; see `groupsAfter`. */
export function groupsBelow(points: readonly Centroid[], threshold: number): Int32Array {
  const { merges } = mergesOf(points);
  const below = merges.findIndex(({ similarity }) => similarity < threshold);
  return groupsAfter(below < 0 ? merges : merges.slice(0, below), points.length);
}

/** The centroid of each group, those who speak most first. */
export function centroidsOf(points: readonly Centroid[], groups: Int32Array): Centroid[] {
  const all = new Map<number, Centroid>();
  points.forEach((point, i) => {
    const group = groups[i] ?? 0;
    const before = all.get(group);
    all.set(group, before === undefined ? point : joined(before, point));
  });
  return [...all.values()].sort((a, b) => b.weight - a.weight);
}

/** The group of each point after some merges, as the index of the first point of the group. */
export function groupsAfter(merges: readonly Merge[], points: number): Int32Array {
  const group = Int32Array.from({ length: points }, (_, i) => i);
  for (const { into, from } of merges) {
    for (let i = 0; i < points; i += 1) if (group[i] === from) group[i] = into;
  }
  return group;
}
