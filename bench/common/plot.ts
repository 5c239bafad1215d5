/** Draws line plots. */
import { COLORS, line, picture, round, text, WIDTH } from './svg.ts';

export interface Point {
  x: number;
  y: number;
  /** The label is written beside the point. */
  label?: string;
}

interface Tick {
  value: number;
  text: string;
}

interface Axis {
  label: string;
  scale: 'log' | 'linear';
  /** Those in range are shown, but for those that touch one that stands before them. Numbers where absent. */
  ticks?: readonly Tick[];
}

interface Panel {
  title: string;
  x: Axis;
  y: Axis;
  series: { name: string; points: Point[] }[];
  /** Draws a line that is proportional to x through the last point of the first series; for two log axes. */
  proportional?: boolean;
}

/** Pixels of a value on its axis. */
type Place = (value: number) => number;

/** Ticks for times, in seconds; the round ones come first. */
export const DURATIONS: readonly Tick[] = [
  ...durations(1, 's', [0.01, 0.1, 1, 10]),
  ...durations(60, 'min', [1, 10]),
  ...durations(3600, 'h', [1, 3, 10]),
  ...durations(1, 's', [0.02, 0.05, 0.2, 0.5, 2, 5, 30]),
  ...durations(60, 'min', [2, 5, 30]),
  ...durations(3600, 'h', [2, 5]),
];
const NUMBERS = [1, 2, 5].flatMap((digit) => numbers(11, (i) => digit * 10 ** (i - 4)));

const PANEL = { left: 78, right: WIDTH - 30, top: 46, bottom: 280, height: 330 };
const DASHED = 'stroke="#6b7280" stroke-width="1.5" stroke-dasharray="6 5"';
/** A label has a rim of the ground's color, so that it stays readable where a line runs behind it. */
const LABEL = 'font-size="11" paint-order="stroke" stroke="#ffffff" stroke-width="3"';

export function plot(title: string, panels: readonly Panel[]): string {
  const drawn = panels.map(
    (panel, i) => `<g transform="translate(0 ${40 + i * PANEL.height})">\n${drawPanel(panel)}\n</g>`,
  );
  return picture(title, 40 + panels.length * PANEL.height, drawn);
}

function drawPanel({ title, x, y, series, proportional = false }: Panel): string {
  const { left, right, top, bottom } = PANEL;
  const points = series.flatMap((one) => one.points);
  const across = axisOf(
    x,
    points.map((point) => point.x),
    { begin: left, end: right, apart: 42 },
  );
  const up = axisOf(
    y,
    points.map((point) => point.y),
    { begin: bottom, end: top, apart: 20 },
  );
  const last = proportional ? series[0]?.points.at(-1) : undefined;
  return [
    text(left, 20, title, 'font-size="13" font-weight="bold"'),
    ...across.ticks.flatMap((tick) => [
      line(across.place(tick.value), top, across.place(tick.value), bottom, 'stroke="#e5e7eb"'),
      text(across.place(tick.value), bottom + 18, tick.text, 'text-anchor="middle"'),
    ]),
    ...up.ticks.flatMap((tick) => [
      line(left, up.place(tick.value), right, up.place(tick.value), 'stroke="#e5e7eb"'),
      text(left - 8, up.place(tick.value) + 4, tick.text, 'text-anchor="end"'),
    ]),
    `<path d="M${left} ${top}V${bottom}H${right}" fill="none" stroke="#374151"/>`,
    text((left + right) / 2, bottom + 38, x.label, 'text-anchor="middle"'),
    `<g transform="translate(18 ${(top + bottom) / 2}) rotate(-90)">${text(0, 0, y.label, 'text-anchor="middle"')}</g>`,
    ...(last === undefined ? [] : [drawProportional(last, across.place, up.place)]),
    ...series.flatMap(({ points }, i) => drawSeries(points, COLORS[i], across.place, up.place)),
    ...legend([
      ...series.map(({ name }, i) => ({ name, style: `stroke="${COLORS[i]}" stroke-width="2"` })),
      ...(proportional ? [{ name: 'proportional', style: DASHED }] : []),
    ]),
  ].join('\n');
}

function drawSeries(points: readonly Point[], color: string | undefined, x: Place, y: Place): string[] {
  const corners = points.map((point) => `${round(x(point.x))},${round(y(point.y))}`);
  return [
    `<polyline points="${corners.join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>`,
    ...points.map(
      (point) =>
        `<circle cx="${round(x(point.x))}" cy="${round(y(point.y))}" r="3.5" fill="${color}" stroke="#ffffff"/>`,
    ),
    // Close neighbors on a rising line leave room above on the left, and below on the right.
    ...points.flatMap(({ label, ...at }, i) => {
      if (label === undefined) return [];
      return i % 2 === 0
        ? [text(x(at.x) - 7, y(at.y) - 8, label, `text-anchor="end" ${LABEL}`)]
        : [text(x(at.x) + 7, y(at.y) + 16, label, LABEL)];
    }),
  ];
}

/** The line of proportion through a point, cut at the edges of the panel. */
function drawProportional(point: Point, x: Place, y: Place): string {
  const slope = (y(point.y * 10) - y(point.y)) / (x(point.x * 10) - x(point.x));
  const at = (left: number) => y(point.y) + (left - x(point.x)) * slope;
  const leftOf = (top: number) => x(point.x) + (top - y(point.y)) / slope;
  const from = Math.max(PANEL.left, leftOf(PANEL.bottom));
  const to = Math.min(PANEL.right, leftOf(PANEL.top));
  return line(from, at(from), to, at(to), DASHED);
}

/** The lines rise, so the upper left corner is free. */
function legend(entries: readonly { name: string; style: string }[]): string[] {
  return entries.flatMap(({ name, style }, i) => [
    line(PANEL.left + 14, PANEL.top + 16 + 18 * i, PANEL.left + 38, PANEL.top + 16 + 18 * i, style),
    text(PANEL.left + 44, PANEL.top + 20 + 18 * i, name, LABEL),
  ]);
}

/** @param pixels where the axis begins and ends, and the least between two labels */
function axisOf(
  { scale, ticks }: Axis,
  values: readonly number[],
  { begin, end, apart }: { begin: number; end: number; apart: number },
) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const isLog = scale === 'log';
  const margin = isLog ? Math.max(0.04 * Math.log10(high / low), 0.08) : 0;
  const step = 10 ** Math.floor(Math.log10(Math.max(high, 1))) / 2;
  const on = (value: number) => (isLog ? Math.log10(value) : value);
  const from = isLog ? on(low) - margin : 0;
  const to = isLog ? on(high) + margin : Math.ceil(Math.max(high, 1) / step) * step;
  const place = (value: number) => begin + ((on(value) - from) / (to - from)) * (end - begin);
  const free: Tick[] = [];
  for (const tick of ticks ?? (isLog ? NUMBERS : numbers(21, (i) => i * step))) {
    const isInside = on(tick.value) >= from && on(tick.value) <= to;
    const touches = free.some((other) => Math.abs(place(tick.value) - place(other.value)) < apart);
    if (isInside && !touches) free.push(tick);
  }
  return { place, ticks: free };
}

function durations(unitSec: number, unit: string, counts: readonly number[]): Tick[] {
  return counts.map((count) => ({ value: count * unitSec, text: `${count} ${unit}` }));
}

function numbers(length: number, at: (i: number) => number): Tick[] {
  const values = Array.from({ length }, (_, i) => Number(at(i).toPrecision(3)));
  return values.map((value) => ({ value, text: String(value) }));
}
