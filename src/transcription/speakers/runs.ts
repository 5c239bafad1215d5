/** Puts neighbors of one speaker together: words to a cue, segments to a line, words to a segment. Pure. */

/** What one speaker says without anybody else between. */
type Run<T> = [first: T, ...others: T[]];

/** The runs in order; everything without a speaker counts as one speaker's. */
export function runsBySpeaker<T extends { speaker?: string }>(all: Iterable<T>): Run<T>[] {
  const runs: Run<T>[] = [];
  for (const item of all) {
    const last = runs.at(-1);
    if (last !== undefined && last[0].speaker === item.speaker) last.push(item);
    else runs.push([item]);
  }
  return runs;
}
