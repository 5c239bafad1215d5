/** The three charts: requests, latency and real-time factor. */
import { createPlot, css, milliseconds } from './plot.js';

const CLASSES = [
  ['2xx', 'served', '--class-ok'],
  ['4xx', 'client error', '--class-client'],
  ['5xx', 'server error', '--class-server'],
  ['503-busy', 'busy', '--class-busy'],
  ['client-disconnect', 'left', '--class-left'],
];

/** @param ask (query) => Promise<series | null>; it resolves to null when the gateway did not answer */
export function createCharts(ask) {
  /** The legend shows these counts, which are not stacked. */
  let counts = CLASSES.map(() => []);
  const rate = createPlot('rate', {
    series: CLASSES.map(([, label, color], i) => ({
      label,
      color,
      fill: () => css(color),
      width: 0,
      paths: globalThis.uPlot.paths.bars({ size: [0.85, 12], gap: 0 }),
      points: { show: false },
      value: (_plot, _stacked, _series, at) => (at === null ? '–' : (counts[i]?.[at] ?? '–')),
    })),
    format: (value) => String(value),
    least: 1,
    whole: true,
  });
  const latency = createPlot('latency', {
    // The last line is on top and has the smallest points. Where the lines coincide, as they do for few requests, all
    // stay visible.
    series: [line('p99', '--line-3', 7), line('p95', '--line-2', 5), line('p50', '--line-1', 2.5)],
    format: milliseconds,
    least: 10,
  });
  const rtf = createPlot('rtf', {
    series: [line('asr', '--line-1'), line('tts', '--line-2')],
    format: (value) => value.toFixed(value < 1 ? 2 : 1),
    least: 0.1,
  });

  let history = null;
  let chosen = null;
  for (const radio of document.querySelectorAll('[name="latency-of"]')) {
    radio.addEventListener('change', () => {
      chosen = radio.value;
      showHistory();
    });
  }

  function showRate(nowSec, byClass) {
    counts = CLASSES.map(([name]) => byClass?.[name] ?? []);
    const { length } = counts[0];
    const times = Array.from({ length }, (_, at) => nowSec - length + at);
    // Each bar is drawn over the one before it, so what stays visible of a bar is its own share.
    const stacked = counts.map((_, from) =>
      times.map((_, at) => counts.slice(from).reduce((sum, its) => sum + its[at], 0)),
    );
    const most = Math.max(0, ...(stacked[0] ?? []));
    rate.show([times, ...stacked], most > 0 ? `at most ${most} in one second, last three minutes` : null);
  }

  function showHistory() {
    if (history === null) return;
    const { nowSec, stepSec, categories } = history;
    const of = chosen ?? Object.keys(categories)[0] ?? 'asr';
    const radio = document.querySelector(`[name="latency-of"][value="${of}"]`);
    if (radio !== null) radio.checked = true;
    const length = 3600 / stepSec;
    const times = Array.from({ length }, (_, at) => nowSec - (length - 1 - at) * stepSec);
    const none = times.map(() => null);
    const { p50 = none, p95 = none, p99 = none } = categories[of]?.latency_ms ?? {};
    const last = p95.findLast((value) => value !== null) ?? null;
    latency.show([times, p99, p95, p50], last === null ? null : `latest p95 ${milliseconds(last)}`);
    const factors = ['asr', 'tts'].map((name) => categories[name]?.rtf_p50 ?? none);
    const lastFactor = factors.flat().findLast((value) => value !== null) ?? null;
    rtf.show([times, ...factors], lastFactor === null ? null : `latest ${lastFactor}`);
  }

  async function draw(query) {
    const answer = await ask(query);
    if (answer === null) return;
    showRate(answer.now_sec, answer.rate.counts);
    if (answer.history === undefined) return;
    const { step_sec: stepSec, categories } = answer.history;
    history = { nowSec: answer.now_sec, stepSec, categories };
    showHistory();
  }

  return { drawAll: () => draw(''), drawRate: () => draw('?only=rate') };
}

/** Traffic comes and goes, so a value without neighbors must be visible too: each value gets a point. */
function line(label, color, size = 4) {
  const fill = () => css(color);
  return { label, color, width: 1.5, points: { show: true, size, width: 0, fill } };
}
