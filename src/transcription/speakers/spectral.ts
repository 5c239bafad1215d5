/**
 * Spectral clustering as 3D-Speaker does it (speakerlab/process/cluster.py): the cosines of each point with its nearest
 * neighbors make a graph, the largest gap among the smallest eigenvalues of its Laplacian says how many groups there
 * are, and k-means over the eigenvectors finds them. Groups whose centers are alike are merged afterwards. Pure.
 *
 * Memory grows with the square of the number of points and time with its cube. The caller bounds the number.
 */
import { EigenvalueDecomposition, Matrix } from 'ml-matrix';
import { type Centroid, cosine, joined } from './voice.ts';

/** The share of the points that count as the neighbors of a point, and the least number of them. */
const NEIGHBORS = { share: 0.012, least: 6 };
/** Groups whose centers are more alike are one. */
const MERGE_COSINE = 0.8;
/** The gaps are looked for among so many eigenvalues. */
const MOST_GROUPS = 16;
const ROUNDS_OF_K_MEANS = 50;

/** The group of each point, 0, 1, 2 ... @param bounds the least and the most groups; they win over the gap */
export function spectralGroups(
  points: readonly Centroid[],
  bounds: { min: number; max: number },
): Int32Array {
  const n = points.length;
  const least = Math.min(bounds.min, n);
  if (n < 2) return new Int32Array(n);
  const { values, vectors } = eigen(laplacian(points));
  const gap = (k: number) => (values[k] ?? 0) - (values[k - 1] ?? 0);
  let found = 1;
  for (let k = 2; k < Math.min(n, MOST_GROUPS); k += 1) if (gap(k) > gap(found)) found = k;
  const groups = Math.min(n, bounds.max, Math.max(bounds.min, found));
  const rows = points.map((_, i) => Float32Array.from({ length: groups }, (_, k) => vectors.get(i, k)));
  return mergeAlike(points, kMeans(rows, groups), least);
}

function laplacian(points: readonly Centroid[]): Matrix {
  const n = points.length;
  const keep = Math.min(n, Math.max(NEIGHBORS.least, Math.floor(NEIGHBORS.share * n)));
  const half = Matrix.zeros(n, n);
  points.forEach((a, i) => {
    const row = points.map((b) => cosine(a.direction, b.direction));
    const floor = row.toSorted((x, y) => y - x)[keep - 1] ?? -1;
    row.forEach((value, j) => {
      if (value >= floor && j !== i) half.set(i, j, value);
    });
  });
  const graph = Matrix.add(half, half.transpose()).mul(-0.5);
  for (let i = 0; i < n; i += 1) {
    graph.set(
      i,
      i,
      graph.getRow(i).reduce((sum, x) => sum + Math.abs(x), 0),
    );
  }
  return graph;
}

function eigen(matrix: Matrix): { values: number[]; vectors: Matrix } {
  const { realEigenvalues, eigenvectorMatrix } = new EigenvalueDecomposition(matrix, {
    assumeSymmetric: true,
  });
  const order = realEigenvalues
    .map((_, i) => i)
    .sort((a, b) => (realEigenvalues[a] ?? 0) - (realEigenvalues[b] ?? 0));
  return {
    values: order.map((i) => realEigenvalues[i] ?? 0),
    vectors: eigenvectorMatrix.subMatrixColumn(order),
  };
}

/** Begins with points far from each other, so that the same points always give the same groups. */
function kMeans(rows: readonly Float32Array[], k: number): Int32Array {
  const distance = (a: Float32Array, b: Float32Array) =>
    a.reduce((sum, x, i) => sum + (x - (b[i] ?? 0)) ** 2, 0);
  const centers = [rows[0] ?? new Float32Array()];
  const away = rows.map((row) => distance(row, centers[0] ?? row));
  while (centers.length < k) {
    const far = away.indexOf(Math.max(...away));
    const center = rows[far] ?? new Float32Array();
    centers.push(center);
    rows.forEach((row, i) => {
      away[i] = Math.min(away[i] ?? 0, distance(row, center));
    });
  }
  const groups = new Int32Array(rows.length);
  for (let round = 0; round < ROUNDS_OF_K_MEANS; round += 1) {
    let moved = false;
    rows.forEach((row, i) => {
      const distances = centers.map((center) => distance(row, center));
      const best = distances.indexOf(Math.min(...distances));
      moved ||= best !== groups[i];
      groups[i] = best;
    });
    if (!moved && round > 0) break;
    centers.forEach((center, g) => {
      const members = rows.filter((_, i) => groups[i] === g);
      if (members.length > 0)
        centers[g] = center.map(
          (_, d) => members.reduce((sum, row) => sum + (row[d] ?? 0), 0) / members.length,
        );
    });
  }
  return groups;
}

function mergeAlike(points: readonly Centroid[], groups: Int32Array, least: number): Int32Array {
  const centers = new Map<number, Centroid>();
  points.forEach((point, i) => {
    const group = groups[i] ?? 0;
    const before = centers.get(group);
    centers.set(group, before === undefined ? point : joined(before, point));
  });
  while (centers.size > least) {
    let best = { similarity: MERGE_COSINE, into: -1, from: -1 };
    for (const [into, a] of centers) {
      for (const [from, b] of centers) {
        const similarity = into < from ? cosine(a.direction, b.direction) : -1;
        if (similarity > best.similarity) best = { similarity, into, from };
      }
    }
    const [a, b] = [centers.get(best.into), centers.get(best.from)];
    if (a === undefined || b === undefined) break;
    centers.set(best.into, joined(a, b));
    centers.delete(best.from);
    for (let i = 0; i < groups.length; i += 1) if (groups[i] === best.from) groups[i] = best.into;
  }
  return groups;
}
