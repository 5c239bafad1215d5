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
  const groups = new Map(points.entries());
  const similarities = new Float32Array(n * n); // of each pair, in the row of the earlier one
  const compare = (i: number, j: number) => {
    similarities[i * n + j] = similarityOf(groups.get(i) as Centroid, groups.get(j) as Centroid);
  };
  const merges: Merge[] = [];
  for (let i = 0; i < n; i += 1) for (let j = i + 1; j < n; j += 1) compare(i, j);
  while (groups.size > 1 && !until(groups.size)) {
    const best = mostAlike(Int32Array.from(groups.keys()), similarities, n);
    const { into, from } = best;
    merges.push(best);
    groups.set(into, joined(groups.get(into) as Centroid, groups.get(from) as Centroid));
    groups.delete(from);
    for (const other of groups.keys())
      if (other !== into) compare(Math.min(into, other), Math.max(into, other));
  }
  return { merges, groups: [...groups.values()] };
}

/** @param left the groups that are left, by the index of their first point, rising; two at least */
function mostAlike(left: Int32Array, similarities: Float32Array, n: number): Merge {
  const best: Merge = { into: 0, from: 0, similarity: Number.NEGATIVE_INFINITY };
  for (let at = 0; at < left.length; at += 1) {
    const into = left[at] as number;
    for (let other = at + 1; other < left.length; other += 1) {
      const from = left[other] as number;
      const similarity = similarities[into * n + from] as number;
      if (similarity > best.similarity) Object.assign(best, { into, from, similarity });
    }
  }
  return best;
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
