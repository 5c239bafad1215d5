/** Draws line plots as SVG by hand, on a white ground of their own so that a dark page does not hide them. */

export interface Point {
  x: number;
  y: number;
  /** The label is written beside the point. */
  label?: string;
}

interface Series {
  name: string;
  points: Point[];
}

interface Tick {
  value: number;
  text: string;
  /** A minor tick is left out where it would touch others. */
  minor?: boolean;
}

interface Axis {
  label: string;
  scale: 'log' | 'linear';
  /** The ticks in range are shown; plain numbers are shown when this is absent. */
  ticks?: Tick[];
}

interface Panel {
  title: string;
  x: Axis;
  y: Axis;
  series: Series[];
  /** Draws a line that is proportional to x through the last point of the first series; for two log axes. */
  proportional?: boolean;
}

interface Range {
  ticks: Tick[];
  /** 0 at the beginning of the axis, 1 at its end. */
  place(value: number): number;
}

/** Ticks for times, in seconds. */
export const DURATIONS: Tick[] = [
  ...[0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30].map((sec) => duration(sec, 1, 's')),
  ...[1, 2, 5, 10, 30].map((min) => duration(min, 60, 'min')),
  ...[1, 2, 3, 5, 10].map((hours) => duration(hours, 3600, 'h')),
];

const WIDTH = 760;
const PANEL = { left: 78, right: 30, top: 46, bottom: 50, height: 330 };
const INNER = { width: WIDTH - PANEL.left - PANEL.right, height: PANEL.height - PANEL.top - PANEL.bottom };
const COLORS = ['#1d4ed8', '#b45309', '#047857', '#7c3aed'];
/** A label has a rim of the ground's color, so that it stays readable where a line runs behind it. */
const LABEL = 'text-anchor="end" font-size="11" paint-order="stroke" stroke="#ffffff" stroke-width="3"';
/** Pixels between two labels of an axis. */
const APART = { x: 42, y: 20 };

export function plot(title: string, panels: Panel[]): string {
  const height = 40 + panels.length * PANEL.height;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#1f2937">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    text(WIDTH / 2, 26, title, 'text-anchor="middle" font-size="16" font-weight="bold"'),
    ...panels.map(
      (panel, i) => `<g transform="translate(0 ${40 + i * PANEL.height})">\n${drawPanel(panel)}\n</g>`,
    ),
    '</svg>',
  ].join('\n')}\n`;
}

function drawPanel(panel: Panel): string {
  const points = panel.series.flatMap((series) => series.points);
  const horizontal = rangeOf(
    panel.x,
    points.map((point) => point.x),
  );
  const vertical = rangeOf(
    panel.y,
    points.map((point) => point.y),
  );
  const x = (value: number) => round(PANEL.left + horizontal.place(value) * INNER.width);
  const y = (value: number) => round(PANEL.top + (1 - vertical.place(value)) * INNER.height);
  const [right, bottom] = [PANEL.left + INNER.width, PANEL.top + INNER.height];
  const middle = `translate(18 ${PANEL.top + INNER.height / 2}) rotate(-90)`;
  return [
    text(PANEL.left, 20, panel.title, 'font-size="13" font-weight="bold"'),
    ...spread(horizontal.ticks, x, APART.x).flatMap((tick) => [
      line(x(tick.value), PANEL.top, x(tick.value), bottom, 'stroke="#e5e7eb"'),
      text(x(tick.value), bottom + 18, tick.text, 'text-anchor="middle"'),
    ]),
    ...spread(vertical.ticks, y, APART.y).flatMap((tick) => [
      line(PANEL.left, y(tick.value), right, y(tick.value), 'stroke="#e5e7eb"'),
      text(PANEL.left - 8, y(tick.value) + 4, tick.text, 'text-anchor="end"'),
    ]),
    `<path d="M${PANEL.left} ${PANEL.top}V${bottom}H${right}" fill="none" stroke="#374151"/>`,
    text(PANEL.left + INNER.width / 2, bottom + 38, panel.x.label, 'text-anchor="middle"'),
    `<g transform="${middle}">${text(0, 0, panel.y.label, 'text-anchor="middle"')}</g>`,
    ...(panel.proportional ? drawProportional(panel, x, y) : []),
    ...panel.series.flatMap((series, i) => drawSeries(series, COLORS[i % COLORS.length] ?? '', x, y)),
    drawLegend(panel),
  ].join('\n');
}

type Place = (value: number) => number;

function drawSeries({ points }: Series, color: string, x: Place, y: Place): string[] {
  const corners = points.map((point) => `${x(point.x)},${y(point.y)}`).join(' ');
  return [
    `<polyline points="${corners}" fill="none" stroke="${color}" stroke-width="2"/>`,
    ...points.map(
      (point) => `<circle cx="${x(point.x)}" cy="${y(point.y)}" r="3.5" fill="${color}" stroke="#ffffff"/>`,
    ),
    ...points.flatMap(({ label, ...at }, i) => {
      if (label === undefined) return [];
      // The higher of two close neighbors is named above, the other below.
      const near = [points[i - 1], points[i + 1]].find(
        (other) => other && Math.abs(x(other.x) - x(at.x)) < 90,
      );
      const below = near !== undefined && near.y > at.y;
      return [text(x(at.x) - 7, y(at.y) + (below ? 22 : -8), label, LABEL)];
    }),
  ];
}

/** Draws the line of proportion, cut at the edges of the panel. */
function drawProportional(panel: Panel, x: Place, y: Place): string[] {
  const last = panel.series[0]?.points.at(-1);
  if (last === undefined) return [];
  const [dx, dy] = [x(last.x * 10) - x(last.x), y(last.y * 10) - y(last.y)];
  const at = (left: number) => y(last.y) + ((left - x(last.x)) * dy) / dx;
  const leftOf = (top: number) => x(last.x) + ((top - y(last.y)) * dx) / dy;
  const from = Math.max(PANEL.left, leftOf(PANEL.top + INNER.height));
  const to = Math.min(PANEL.left + INNER.width, leftOf(PANEL.top));
  return [line(from, at(from), to, at(to), 'stroke="#6b7280" stroke-width="1.5" stroke-dasharray="6 5"')];
}

/** Draws the names of the series in one row above the panel's right corner. */
function drawLegend(panel: Panel): string {
  const entries = panel.series.map((series, i) => ({ name: series.name, style: `stroke="${COLORS[i]}"` }));
  if (panel.proportional)
    entries.push({ name: 'proportional', style: 'stroke="#6b7280" stroke-dasharray="6 5"' });
  let left = WIDTH - PANEL.right;
  return entries
    .toReversed()
    .flatMap(({ name, style }) => {
      left -= name.length * 6.2 + 44;
      return [line(left, 16, left + 24, 16, `${style} stroke-width="2"`), text(left + 29, 20, name)];
    })
    .join('\n');
}

function rangeOf({ scale, ticks }: Axis, values: number[]): Range {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (scale === 'log') {
    const margin = Math.max(0.04 * Math.log10(high / low), 0.08);
    const [from, to] = [Math.log10(low) - margin, Math.log10(high) + margin];
    const inside = ({ value }: Tick) => Math.log10(value) >= from && Math.log10(value) <= to;
    const place = (value: number) => (Math.log10(value) - from) / (to - from);
    return { ticks: (ticks ?? logTicks()).filter(inside), place };
  }
  const step = roundStep(Math.max(high, 1) / 4);
  const top = Math.ceil(Math.max(high, 1) / step) * step;
  const even = Array.from({ length: Math.round(top / step) + 1 }, (_, i) => number(i * step));
  return { ticks: (ticks ?? even).filter(({ value }) => value <= top), place: (value) => value / top };
}

function logTicks(): Tick[] {
  return Array.from({ length: 11 }, (_, i) => i - 4).flatMap((power) =>
    [1, 2, 5].map((digit) => ({ ...number(digit * 10 ** power), minor: digit > 1 })),
  );
}

function roundStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((digit) => digit * power >= value) ?? 10) * power;
}

/** Leaves out the ticks that would touch others; the round ones come first. */
function spread(ticks: Tick[], place: Place, apart: number): Tick[] {
  const taken: number[] = [];
  const byRank = ticks.toSorted((a, b) => Number(a.minor ?? false) - Number(b.minor ?? false));
  return byRank.filter(({ value }) => {
    const free = taken.every((other) => Math.abs(place(value) - other) >= apart);
    if (free) taken.push(place(value));
    return free;
  });
}

function duration(count: number, unitSec: number, unit: string): Tick {
  const round = Number.isInteger(Math.log10(count)) || count * unitSec === 10_800;
  return { value: count * unitSec, text: `${count} ${unit}`, minor: !round };
}

function number(value: number): Tick {
  const exact = Number(value.toPrecision(3));
  return { value: exact, text: String(exact) };
}

function line(x1: number, y1: number, x2: number, y2: number, style: string): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" ${style}/>`;
}

function text(x: number, y: number, words: string, style = ''): string {
  return `<text x="${round(x)}" y="${round(y)}" ${style}>${escaped(words)}</text>`;
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
