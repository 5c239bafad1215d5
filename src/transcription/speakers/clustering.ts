/**
 * Finds the speakers of a whole audio among the voices of its windows. It never sees more than `maxPoints` points: voices
 * that are most alike are merged while they come in, so the memory of a file of 3 h is that of one of a quarter of an
 * hour. Pure. bench/results/speakers.md has the figures that the constants come from.
 */
import type { SpeakerRequest } from '../request.ts';
import { centroidsOf, groupsAfter, mergesOf, similarityOf } from './agglomerative.ts';
import { type Centroid, centroidOf, joined, type Voice } from './voice.ts';

export interface ClusteringOptions {
  /** How many speakers there are, as far as it is known. */
  count: SpeakerRequest['count'];
  /** The most points that are compared with each other. */
  maxPoints: number;
}

/** Groups of voices whose cosine is below it are two speakers. */
const THRESHOLD = 0.65;

/** A speaker speaks alone for at least so many seconds, or this share of all such speech if that is less. */
const LEAST_SEC = 4;
const LEAST_SHARE = 0.03;

/** Of those who speak less than this, or than that share if it is less, little is known, and they need be less alike. */
const SMALL_SEC = 8;
const SMALL_SHARE = 0.2;
const SMALL_THRESHOLD = 0.55;

/** Collects voices, and merges those that are most alike whenever there are `maxPoints`. */
export function createVoicePool(maxPoints: number) {
  let points: Centroid[] = [];
  return {
    add(voice: Voice, window: number): void {
      const half = Math.ceil(points.length / 2);
      if (points.length >= maxPoints) points = mergesOf(points, (groups) => groups <= half).groups;
      points.push(centroidOf(voice, window));
    },
    points: (): readonly Centroid[] => points,
  };
}

/** The speakers, those who speak most first; none if there are no points. */
export function clusterVoices(points: readonly Centroid[], options: ClusteringOptions): Centroid[] {
  const { count } = options;
  if (points.length > options.maxPoints) throw new Error(`${points.length} points are too many to compare`);
  if (points.length === 0 || count.max < 1) return [];
  return largeGroups(points, cutOf(points, options), count).sort((a, b) => b.weight - a.weight);
}

/**
 * The cut through the merges at the threshold. If it leaves too few or too many speakers, the nearest cut that leaves
 * an allowed number of them. Voices that are too short to be a speaker do not count.
 */
function cutOf(points: readonly Centroid[], { count }: ClusteringOptions): Int32Array {
  const { merges } = mergesOf(points);
  const least = leastWeight(points);
  const weights = points.map(({ weight }) => weight);
  let speakers = weights.filter((weight) => weight >= least).length;
  const below = merges.findIndex(({ similarity }) => similarity < THRESHOLD);
  const wanted = below < 0 ? merges.length : below;
  let best = { cut: 0, fits: false, away: Number.POSITIVE_INFINITY };
  for (let cut = 0; cut <= merges.length; cut += 1) {
    const fits = speakers >= count.min && speakers <= count.max;
    const away = Math.abs(cut - wanted);
    if ((fits && !best.fits) || (fits === best.fits && away < best.away)) best = { cut, fits, away };
    const merge = merges[cut];
    if (merge === undefined) break;
    const [into = 0, from = 0] = [weights[merge.into], weights[merge.from]];
    const isSpeaker = (weight: number) => (weight >= least ? 1 : 0);
    speakers += isSpeaker(into + from) - isSpeaker(into) - isSpeaker(from);
    weights[merge.into] = into + from;
  }
  // Where no cut leaves enough speakers who speak enough, even one who says little is one.
  const groups = Math.min(count.max, Math.max(count.min, points.length - wanted));
  return groupsAfter(
    merges.slice(0, best.fits ? best.cut : Math.max(0, points.length - groups)),
    points.length,
  );
}

function leastWeight(points: readonly Centroid[]): number {
  return Math.min(LEAST_SEC, weightOf(points) * LEAST_SHARE);
}

const weightOf = (points: readonly Centroid[]) => points.reduce((sum, { weight }) => sum + weight, 0);

/** The centroids of the groups that are large enough. What others say would only blur them. */
function largeGroups(
  points: readonly Centroid[],
  groups: Int32Array,
  { min, max }: SpeakerRequest['count'],
): Centroid[] {
  const bySize = centroidsOf(points, groups);
  const least = leastWeight(points);
  const large = bySize.filter(({ weight }) => weight >= least).length;
  let speakers = bySize.slice(0, Math.min(max, Math.max(min, large, 1)));
  const small = Math.min(SMALL_SEC, weightOf(points) * SMALL_SHARE);
  while (speakers.length > min) {
    const nearest = nearestOf(speakers, small);
    if (nearest === null || nearest.similarity < SMALL_THRESHOLD) break;
    const { one, other } = nearest;
    speakers = [...speakers.filter((group) => group !== one && group !== other), joined(one, other)];
  }
  return speakers;
}

/** The two most similar groups; the first of them is lighter than `weight`. */
function nearestOf(groups: readonly Centroid[], weight: number) {
  const pairs = groups
    .filter((one) => one.weight < weight)
    .flatMap((one) =>
      groups
        .filter((other) => other !== one)
        .map((other) => ({ one, other, similarity: similarityOf(one, other) })),
    );
  return pairs.reduce<(typeof pairs)[number] | null>(
    (best, pair) => (best === null || pair.similarity > best.similarity ? pair : best),
    null,
  );
}
