/** Draws on a canvas the peaks, how far the text has come, where speech was recognized, and the playhead. */
import { toPeaks } from './sound.js';

const BAR = 3;
const GAP = 1;
const STRIP = 4;
/** With more speakers the lanes get so thin that they share the height. */
const MOST_LANES_PX = 42;

/** @param canvas is sized by its parent through CSS */
export function createWaveform(canvas) {
  let samples = null;
  let peaks = new Float32Array();
  let view = { durationSec: 0, atSec: 0, spans: [], lanes: 1, live: null };
  let queued = false;

  function queue() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      paint();
    });
  }

  function measure() {
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(canvas.clientWidth * scale);
    canvas.height = Math.round(canvas.clientHeight * scale);
    const count = Math.floor(canvas.clientWidth / (BAR + GAP));
    if (samples !== null && count > 0 && count !== peaks.length) peaks = toPeaks(samples, count);
    queue();
  }

  function paint() {
    const context = canvas.getContext('2d');
    const style = getComputedStyle(canvas);
    const color = (name) => style.getPropertyValue(name).trim();
    const scale = window.devicePixelRatio || 1;
    const width = canvas.width / scale;
    const height = canvas.height / scale;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const x = (sec) => (view.durationSec > 0 ? (sec / view.durationSec) * width : 0);

    const strip = view.lanes > 1 ? Math.min(2 * STRIP, MOST_LANES_PX / view.lanes) : STRIP;
    const middle = (height - strip * view.lanes) / 2;

    context.fillStyle = color('--accent-soft');
    for (const { start, end } of view.spans) context.fillRect(x(start), 0, x(end) - x(start), height);

    const shown = view.live === null ? peaks : view.live.slice(-Math.floor(width / (BAR + GAP)));
    const played = view.live === null ? x(view.atSec) : 0;
    for (let i = 0; i < shown.length; i++) {
      const left = i * (BAR + GAP);
      const half = Math.max(1, shown[i] * (middle - 6));
      context.fillStyle = color(left < played ? '--accent' : view.live === null ? '--line-strong' : '--bad');
      context.fillRect(left, middle - half, BAR, half * 2);
    }

    // Each speaker has a lane as well as a color, because not everyone tells the colors apart.
    for (const { start, end, lane = 0, color: name = '--accent' } of view.spans) {
      context.fillStyle = color(name);
      const top = height - strip * (view.lanes - lane);
      const gap = view.lanes > 1 ? 1 : 0;
      context.fillRect(x(start), top + gap, Math.max(1, x(end) - x(start) - 2), strip - gap);
    }
    if (view.live === null && view.durationSec > 0) {
      context.fillStyle = color('--ink');
      context.fillRect(Math.min(width - 2, x(view.atSec)), 0, 2, height);
    }
  }

  new ResizeObserver(measure).observe(canvas);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', queue);

  return {
    /** Takes the samples to draw; with null only the strip and the playhead are drawn. */
    setSamples(next) {
      samples = next;
      peaks = new Float32Array();
      measure();
    },
    /** @param change part of {durationSec, atSec, spans: {start, end, lane, color}[], lanes, live: number[] | null} */
    update(change) {
      view = { ...view, ...change };
      queue();
    },
  };
}
