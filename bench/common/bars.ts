/** Draws bars as SVG by hand, on a white ground of their own so that a dark page does not hide them. */

export interface BarChart {
  title: string;
  /** What a bar's length means, below the bars. */
  unit: string;
  series: string[];
  groups: BarGroup[];
}

interface BarGroup {
  name: string;
  /** A value for each series. */
  values: number[];
  /** What is written at the end of each bar. */
  labels: string[];
}

const WIDTH = 760;
const LEFT = 250;
const RIGHT = 70;
const TOP = 70;
const BAR = 15;
const GAP = 12;
const COLORS = ['#1d4ed8', '#b45309'];

export function bars({ title, unit, series, groups }: BarChart): string {
  const longest = Math.max(...groups.flatMap(({ values }) => values));
  const step = series.length * BAR + GAP;
  const height = TOP + groups.length * step + 34;
  const lengthOf = (value: number) => Math.round((value / longest) * (WIDTH - LEFT - RIGHT));
  const rows = groups.flatMap(({ name, values, labels }, row) => {
    const top = TOP + row * step;
    const middle = top + (series.length * BAR) / 2 + 4;
    return [
      text(LEFT - 10, middle, name, 'text-anchor="end"'),
      ...values.flatMap((value, i) => [
        `<rect x="${LEFT}" y="${top + i * BAR}" width="${lengthOf(value)}" height="${BAR - 2}" fill="${COLORS[i]}"/>`,
        text(LEFT + lengthOf(value) + 6, top + i * BAR + 11, labels[i] ?? '', 'font-size="11"'),
      ]),
    ];
  });
  const legend = series.flatMap((name, i) => [
    `<rect x="${LEFT + i * 160}" y="42" width="12" height="12" fill="${COLORS[i]}"/>`,
    text(LEFT + i * 160 + 18, 52, name),
  ]);
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#1f2937">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    text(WIDTH / 2, 26, title, 'text-anchor="middle" font-size="16" font-weight="bold"'),
    ...legend,
    ...rows,
    text(LEFT, height - 12, unit, 'fill="#6b7280"'),
    '</svg>',
  ].join('\n')}\n`;
}

function text(x: number, y: number, words: string, style = ''): string {
  return `<text x="${x}" y="${y}" ${style}>${escaped(words)}</text>`;
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
