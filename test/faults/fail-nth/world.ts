/** Prepares a folder with the library and the weights, and removes it at the end. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CALLS, type Call } from './calls.ts';
import { compileLibrary, KINDS, type Kind } from './injector.ts';
import { type Finding, startSweeper } from './sweep.ts';
import { writeWeights } from './weights.ts';

export interface Sweeps {
  tried: number;
  findings: Finding[];
  /** A line for each call and kind: how many calls of the system it makes, and how many of them failed here. */
  lines: string[];
}

/**
 * Sweeps over all calls and kinds, once with a single failure and once with all that follow.
 * @param isWanted is asked before each sweep, to take only some of them
 * @returns the reason when the library cannot be used here
 */
export async function sweepAll(
  pick: (calls: number) => number[],
  isWanted: () => boolean = () => true,
): Promise<Sweeps | string> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-fail-nth-'));
  try {
    const reason = compileLibrary(dir);
    if (reason !== false) return reason;
    await writeWeights(dir);
    return await sweepIn(dir, pick, isWanted);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function sweepIn(
  dir: string,
  pick: (calls: number) => number[],
  isWanted: () => boolean,
): Promise<Sweeps> {
  const sweeps: Sweeps = { tried: 0, findings: [], lines: [] };
  await using sweeper = await startSweeper(dir);
  const pairs = CALLS.flatMap((call) =>
    (Object.keys(KINDS) as Kind[]).map((kind): [Call, Kind] => [call, kind]),
  ).filter(([call, kind]) => kind !== 'thread' || !call.startsThreads);
  for (const [call, kind] of pairs) {
    for (const onwards of [false, true].filter(isWanted)) {
      const { tried, calls, findings } = await sweeper.sweep(call, kind, onwards, pick);
      if (calls === 0) break;
      sweeps.tried += tried;
      sweeps.findings.push(...findings);
      sweeps.lines.push(`${call.name}, ${kind}${onwards ? ' from there on' : ''}: ${tried} of ${calls}`);
    }
  }
  return sweeps;
}
