/**
 * Draws one uPlot chart in the page's colors and at the width of its place, with a sentence for those who cannot see
 * it.
 */

const HEIGHT = 190;

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const plots = [];
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const { drawAgain } of plots) drawAgain();
});

/**
 * @param name name of the figure in the page
 * @param series the series as uPlot takes them, with a `color` from the page's style
 * @param least value that the axis reaches at least
 * @param whole true where only whole numbers make sense
 */
export function createPlot(name, { series, format, least, whole = false }) {
  const place = document.getElementById(`chart-${name}`);
  const empty = document.getElementById(`chart-${name}-empty`);
  const title = place.closest('figure').querySelector('h2').textContent;
  const axis = () => ({
    stroke: css('--ink-soft'),
    font: `12px ${css('--font')}`,
    grid: { stroke: css('--line'), width: 1 },
    ticks: { show: false },
  });
  const legendValue = (_plot, value) => (value === null || value === undefined ? '–' : format(value));
  const options = () => ({
    width: Math.max(200, place.clientWidth),
    height: HEIGHT,
    cursor: { y: false, drag: { setScale: false }, points: { show: false } },
    legend: { markers: { width: 0, fill: (_plot, at) => css(series[at - 1].color) } },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(least, (max ?? 0) * 1.1)] } },
    axes: [
      { ...axis(), size: 30, space: 70, values: timeLabels },
      {
        ...axis(),
        size: 56,
        space: 36,
        ...(whole ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000] } : {}),
        values: (_plot, values) => values.map(format),
      },
    ],
    series: [
      { label: 'at', value: (_plot, sec) => (sec === null ? '–' : clock(sec)) },
      ...series.map(({ color, ...its }) => ({ stroke: css(color), value: legendValue, ...its })),
    ],
  });
  let plot = null;

  new ResizeObserver(() => {
    if (plot !== null && place.clientWidth > 0) plot.setSize({ width: place.clientWidth, height: HEIGHT });
  }).observe(place);
  plots.push({
    drawAgain() {
      if (plot === null) return;
      const { data } = plot;
      plot.destroy();
      plot = new globalThis.uPlot(options(), data, place);
    },
  });

  return {
    /** @param summary the chart in words; null when there is nothing to see */
    show(data, summary) {
      empty.hidden = summary !== null;
      place.hidden = summary === null;
      place.setAttribute('aria-label', `${title}: ${summary ?? 'nothing to show yet'}`);
      if (summary === null) return;
      if (plot === null) {
        plot = new globalThis.uPlot(options(), data, place);
      } else plot.setData(data);
    },
  };
}

export function milliseconds(ms) {
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${Number((ms / 1000).toFixed(ms < 10_000 ? 2 : 1))} s`;
}

const clock = (sec) => new Date(sec * 1000).toLocaleTimeString([], { hourCycle: 'h23' });

function timeLabels(_plot, values, _axis, _space, step) {
  const short = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };
  const options = step < 60 ? { ...short, second: '2-digit' } : short;
  return values.map((sec) => new Date(sec * 1000).toLocaleTimeString([], options));
}
