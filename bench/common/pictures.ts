/**
 * `npm run bench -- pictures` draws the pictures at the top of docs/performance.md and docs/accuracy.md
 * from the tables of bench/results. A test compares the pictures with the tables.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './machine.ts';
import { COLORS, picture, rectangle, text, WIDTH } from './svg.ts';

const US = 'voxgate';
const PEER = 'faster-whisper beam 5';

/** The classes of bench/results/peers.md in which both programs decode as they do by default. */
const SPEED: readonly (readonly [place: string, name: string])[] = [
  ['commands-timed', '2 to 5 s'],
  ['sentences-timed', '5 to 15 s'],
  ['6min-timed', '6 min, pauses of 3 s'],
  ['60min', '60 min'],
];

/** The forms of bench/results/accuracy.md, of which the row "all prompts" is drawn. */
const ACCURACY: readonly (readonly [place: string, name: string])[] = [
  ['accuracy-json', 'as recorded'],
  ['accuracy-detected', 'language detected'],
  ['accuracy-telephone', 'telephone, 8 kHz'],
  ['accuracy-quiet', 'softer by 30 dB'],
  ['accuracy-distant', 'far end of a room'],
  ['accuracy-noise', 'white noise, 10 dB below'],
  ['accuracy-babble', 'six other voices, 10 dB below'],
  ['accuracy-joined', 'joined, pauses of 1.2 s'],
  ['accuracy-joined-closely', 'joined, pauses of 0.4 s'],
  ['accuracy-joined-without-pauses', 'joined, no pauses'],
  ['accuracy-repeated', 'one sentence 20 times'],
];

type Row = Readonly<Record<string, string>>;

/** The rows of the first table of a place that a bench writes, by the name in the first cell. */
function rowsOf(file: string, place: string): Map<string, Row> {
  const page = readFileSync(join(ROOT, 'bench/results', file), 'utf8');
  const [, text = ''] = page.split(`<!-- bench:${place} -->`);
  const lines = text.slice(text.indexOf('\n|')).trimStart().split('\n\n', 1)[0]?.split('\n') ?? [];
  const [columns = [], , ...rows] = lines.map((line) => line.split('|').map((cell) => cell.trim()));
  return new Map(
    rows.map((cells) => [
      cells[1] ?? '',
      Object.fromEntries(columns.map((column, i) => [column, cells[i] ?? ''])),
    ]),
  );
}

function cell(rows: Map<string, Row>, row: string, column: string): string {
  const found = rows.get(row)?.[column];
  if (found === undefined) throw new Error(`no "${column}" of "${row}"`);
  return found;
}

export function speedPicture(): string {
  const groups = SPEED.map(([place, name]) => {
    const ratios = cell(rowsOf('peers.md', place), PEER, 'ratio to voxgate, median [min, max]');
    const ratio = Number(ratios.split(' ')[0]);
    return { name, values: [1, ratio], labels: ['1', `${ratio.toFixed(1)} times`] };
  });
  return bars(
    'Time for the same speech, both by default',
    'Wall time over that of voxgate; Whisper base on 2 cores; less is better.',
    groups,
  );
}

export function accuracyPicture(): string {
  const groups = ACCURACY.map(([place, name]) => {
    const rows = rowsOf('accuracy.md', place);
    // Behind the rate of a peer stands how much longer it took.
    const labels = [US, PEER].map((peer) => cell(rows, 'all prompts', peer).split(',')[0] ?? '');
    return { name, values: labels.map(Number.parseFloat), labels };
  });
  return bars(
    'Words that are wrong, prompts in five languages',
    'Word error rate; Whisper base on both sides; less is better.',
    groups,
  );
}

interface BarGroup {
  name: string;
  /** A value for each program. */
  values: number[];
  /** What is written at the end of each bar. */
  labels: string[];
}

const LEFT = 250;
const TOP = 70;
const BAR = 15;
const STEP = 2 * BAR + 12;
const LONGEST = WIDTH - LEFT - 70;

/** @param unit what a bar's length means, which stands below the bars */
function bars(title: string, unit: string, groups: readonly BarGroup[]): string {
  const longest = Math.max(...groups.flatMap(({ values }) => values));
  const rows = groups.flatMap(({ name, values, labels }, row) => {
    const top = TOP + row * STEP;
    const lengths = values.map((value) => Math.round((value / longest) * LONGEST));
    return [
      text(LEFT - 10, top + BAR + 4, name, 'text-anchor="end"'),
      ...lengths.flatMap((length, i) => [
        rectangle(LEFT, top + i * BAR, length, BAR - 2, COLORS[i]),
        text(LEFT + length + 6, top + i * BAR + 11, labels[i] ?? '', 'font-size="11"'),
      ]),
    ];
  });
  const legend = [US, 'faster-whisper'].flatMap((name, i) => [
    rectangle(LEFT + i * 160, 42, 12, 12, COLORS[i]),
    text(LEFT + i * 160 + 18, 52, name),
  ]);
  const height = TOP + groups.length * STEP + 34;
  return picture(title, height, [...legend, ...rows, text(LEFT, height - 12, unit, 'fill="#6b7280"')]);
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(ROOT, 'docs/images/speed.svg'), speedPicture());
  writeFileSync(join(ROOT, 'docs/images/word-errors.svg'), accuracyPicture());
}
