/** Writes the tables of the comparison as Markdown. */
import type { ErrorRates } from '../accuracy/error-rate.ts';
import type { ClipClass } from '../clips/clip-classes.ts';
import type { Clip } from '../clips/clips.ts';
import { describeMachine } from '../common/machine.ts';
import { known, median, percent, sumOf } from '../common/numbers.ts';
import { markdownTable } from '../common/page.ts';
import type { Measured, Outcome } from './measurement.ts';

export interface ClassResult {
  clipClass: ClipClass;
  outcomes: Outcome[];
}

/** The peers whose times those of all are divided by: as it comes, and, where it was measured, as greedy as some peers. */
const REFERENCE_PEERS = ['voxgate', 'voxgate-beam-1'];

/**
 * Tells machine and versions of one class.
 * @param run `load` is the machine's load before the class; all were held to the instructions of `level`, if any, and
 *   computed on `device`
 */
export function describeRun(
  { outcomes }: ClassResult,
  run: { threads: number; load: number; level?: string | undefined; device?: string },
): string {
  const versions = outcomes.filter(({ version }) => version !== '').map((o) => `${o.name}: ${o.version}`);
  const leftOut = outcomes
    .filter(({ failure }) => failure !== null)
    .map((outcome) => `Without ${outcome.name}: ${reason(outcome)}.`);
  return [
    `${describeMachine()}, load before ${run.load.toFixed(1)}; ${run.threads} threads each${run.level === undefined ? '' : `, ${run.level}`}${run.device === 'cuda' ? ', on the GPU' : ''}. ${versions.join('; ')}.`,
    ...leftOut,
  ].join('\n\n');
}

export async function classTable(result: ClassResult, rates: ErrorRates | null): Promise<string> {
  const { clips, stream = false, title, rounds } = result.clipClass;
  const seconds = sumOf(clips, (clip) => clip.seconds);
  const unit = isLong(clips) ? 's' : 'ms';
  const columns = [
    '',
    `wall time ${unit}, median [min, max]`,
    ...(stream ? [`first segment ${unit}`] : []),
    ...referencesOf(result).map(({ name }) => `ratio to ${name}, median [min, max]`),
    'CPU s a pass',
    'peak MB',
    'word error rate (worst round)',
  ];
  const rows: string[][] = [];
  for (const outcome of result.outcomes.filter(({ runs }) => runs.length > 0))
    rows.push(...(await peerRows(outcome, result, rates)));
  const amount = `${clips.length} ${clips.length === 1 ? 'clip' : 'clips'}, ${seconds.toFixed(0)} s together`;
  return [
    `### ${title}`,
    `${amount}; ${rounds} ${rounds === 1 ? 'round' : 'rounds'}.`,
    markdownTable(columns, rows),
  ].join('\n\n');
}

const isLong = (clips: readonly Clip[]) => clips.some(({ seconds }) => seconds > 30);

const referencesOf = ({ outcomes }: ClassResult) =>
  outcomes.filter(({ id, runs }) => REFERENCE_PEERS.includes(id) && runs.length > 0);

/** The row of a peer, and behind it one without the time of loading where that is known. */
async function peerRows(
  outcome: Outcome,
  result: ClassResult,
  rates: ErrorRates | null,
): Promise<string[][]> {
  const { name, runs } = outcome;
  const { clips, stream = false } = result.clipClass;
  const time = (ms: number) => (isLong(clips) ? (ms / 1000).toFixed(2) : ms.toFixed(0));
  const ratioCells = (ms: (measured: Measured) => number) =>
    referencesOf(result).map((own) => spread(ratios(runs, own.runs, ms), (value) => value.toFixed(2)));
  const wall = ({ run }: Measured) => run.wallMs;
  const row = [
    name,
    spread(runs.map(wall), time),
    ...(stream ? [time(median(runs.map(({ run }) => run.firstMs)))] : []),
    ...ratioCells(wall),
    known(outcome.cpuSecPerPass, 2),
    known(outcome.peakMegabytes, 0),
    await errorRates(outcome, result.clipClass, rates),
  ];
  const inside = ({ run }: Measured) => run.withoutLoadMs ?? Number.NaN;
  const cells = [spread(runs.map(inside), time), ...(stream ? [''] : []), ...ratioCells(inside)];
  return cells[0] === '' ? [row] : [row, [`${name}, without loading`, ...cells, '', '', '']];
}

/** Puts the reason on one line, without the folders of this machine. */
function reason({ failure }: Outcome): string {
  return (failure ?? '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/(\/[^\s/:'"]+)+\/([^\s/:'"]+)/g, '$2')
    .slice(0, 300);
}

/** Computes for each clip the ratio of the medians. */
function ratios(runs: Measured[], own: Measured[], ms: (measured: Measured) => number): number[] {
  return [...new Set(runs.map(({ clip }) => clip))].map((clip) => {
    const theirs = runs.filter((measured) => measured.clip === clip).map(ms);
    const ours = own.filter((measured) => measured.clip === clip).map(({ run }) => run.wallMs);
    return median(theirs) / median(ours);
  });
}

/**
 * Rates the class over all rounds, with the worst round beside it, because a fast answer must not be wrong even once.
 */
async function errorRates(
  { runs }: Outcome,
  { spoken }: ClipClass,
  rates: ErrorRates | null,
): Promise<string> {
  const texts = runs.flatMap(({ clip: { text, language = spoken }, round, run }) =>
    text === null ? [] : [{ text, language, heard: run.text, round }],
  );
  if (rates === null || texts.length === 0) return 'no reference';
  let worst = 0;
  for (const round of new Set(texts.map((text) => text.round)))
    worst = Math.max(worst, await rates.rate(texts.filter((text) => text.round === round)));
  return `${percent(await rates.rate(texts))} (${percent(worst)})`;
}

function spread(values: number[], format: (value: number) => string): string {
  if (values.some(Number.isNaN)) return '';
  return `${format(median(values))} [${format(Math.min(...values))}, ${format(Math.max(...values))}]`;
}
