/** Writes the tables of the comparison as Markdown. */
import { cpus, totalmem } from 'node:os';
import type { ErrorRates } from '../accuracy/error-rate.ts';
import type { ClipClass } from '../clips/clip-classes.ts';
import { median } from '../common/gateway.ts';
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

export function describeMachine(): string {
  const cpu = cpus();
  return `${cpu[0]?.model.trim()}, ${cpu.length} cores, ${Math.round(totalmem() / 2 ** 20)} MB`;
}

export async function classTable({ clipClass, outcomes }: ClassResult, rates: ErrorRates | null) {
  const { clips, stream, title, rounds } = clipClass;
  const long = clips.some(({ seconds }) => seconds > 30);
  const time = (ms: number) => (long ? (ms / 1000).toFixed(2) : ms.toFixed(0));
  const unit = long ? 's' : 'ms';
  const total = clips.reduce((sum, clip) => sum + clip.seconds, 0);
  const references = outcomes.filter(({ id, runs }) => REFERENCE_PEERS.includes(id) && runs.length > 0);
  const columns = [
    '',
    `wall time ${unit}, median [min, max]`,
    ...(stream ? [`first segment ${unit}`] : []),
    ...references.map(({ name }) => `ratio to ${name}, median [min, max]`),
    'CPU s a pass',
    'peak MB',
    'word error rate (worst round)',
  ];
  const rows: string[][] = [];
  for (const outcome of outcomes.filter(({ runs }) => runs.length > 0)) {
    const { name, runs } = outcome;
    const wall = ({ run }: Measured) => run.wallMs;
    rows.push([
      name,
      spread(runs.map(wall), time),
      ...(stream ? [time(median(runs.map(({ run }) => run.firstMs)))] : []),
      ...references.map((own) => spread(ratios(runs, own.runs, wall), twoDigits)),
      known(outcome.cpuSecPerPass, 2),
      known(outcome.peakMegabytes, 0),
      await errorRates(outcome, clipClass, rates),
    ]);
    const inside = ({ run }: Measured) => run.withoutLoadMs ?? Number.NaN;
    if (runs.every((measured) => !Number.isNaN(inside(measured)))) {
      const cells = [spread(runs.map(inside), time), ...(stream ? [''] : [])];
      rows.push([
        `${name}, without loading`,
        ...cells,
        ...references.map((own) => spread(ratios(runs, own.runs, inside), twoDigits)),
        '',
        '',
        '',
      ]);
    }
  }
  const amount = `${clips.length} ${clips.length === 1 ? 'clip' : 'clips'}, ${total.toFixed(0)} s together`;
  return [
    `### ${title}`,
    '',
    `${amount}; ${rounds} ${rounds === 1 ? 'round' : 'rounds'}.`,
    '',
    markdownTable(columns, rows),
  ].join('\n');
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
  const known = runs.filter(({ clip }) => clip.text !== null);
  if (rates === null || known.length === 0) return 'no reference';
  const rate = (some: Measured[]) => rateOfLanguages(some, spoken, rates);
  let worst = 0;
  for (const round of new Set(known.map((measured) => measured.round))) {
    worst = Math.max(worst, await rate(known.filter((measured) => measured.round === round)));
  }
  return `${percent(await rate(known))} (${percent(worst)})`;
}

/** Each language has a normalizer of its own; the errors of all are counted together. */
async function rateOfLanguages(runs: Measured[], spoken: string, rates: ErrorRates): Promise<number> {
  const languageOf = ({ clip }: Measured) => clip.language ?? spoken;
  let errors = 0;
  let words = 0;
  for (const language of new Set(runs.map(languageOf))) {
    const some = runs.filter((measured) => languageOf(measured) === language);
    const texts = some.map(({ clip }) => clip.text ?? '');
    for (const pair of await rates.count(
      texts,
      some.map(({ run }) => run.text),
      language,
    )) {
      errors += pair.errors;
      words += pair.words;
    }
  }
  return errors / words;
}

function spread(values: number[], format: (value: number) => string): string {
  if (values.some(Number.isNaN)) return '';
  return `${format(median(values))} [${format(Math.min(...values))}, ${format(Math.max(...values))}]`;
}

function twoDigits(value: number): string {
  return value.toFixed(2);
}

function known(value: number, digits: number): string {
  return Number.isNaN(value) ? '' : value.toFixed(digits);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
