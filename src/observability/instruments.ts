/** Joins the instruments that watch the traffic: each exchange goes to every instrument that is switched on. */
import type { Logger } from 'winston';
import { createCapture, withoutVoices } from '../capture/capture.ts';
import { createCaptureRetry } from '../capture/capture-retry.ts';
import type { Config } from '../config/config.ts';
import { createAccessLog, createStdoutLog } from './access-log.ts';
import type { AnswerRecord } from './answer-record.ts';
import type { Exchange } from './exchange.ts';
import { createMetrics } from './metrics.ts';
import { createPrometheus, type PrometheusOptions } from './prometheus.ts';
import type { Toggles } from './toggles.ts';

export type Instruments = ReturnType<typeof createInstruments>;

export interface InstrumentsDeps extends PrometheusOptions {
  log: Logger;
}

export function createInstruments(config: Config['observability'], deps: InstrumentsDeps) {
  const { log } = deps;
  const metrics = createMetrics({ windowSec: config.metricsWindowSec });
  const prometheus = createPrometheus(deps);
  const { capture, toggles, failure, retry } = createSwitchedCapture(config, log);
  // Also with the log switched off, because it removes what is too old.
  const accessLog =
    config.logDir === '-'
      ? createStdoutLog(log)
      : createAccessLog({
          dir: config.logDir,
          log,
          maxAgeMs: config.logMaxAgeMs,
          maxBytes: config.logMaxBytes,
        });

  return {
    metrics,
    prometheus,
    toggles,
    capture,
    /** Records a request that is over. */
    finished(exchange: Exchange): void {
      if (toggles.metrics) {
        metrics.record(exchange);
        prometheus.record(exchange);
      }
      if (toggles.access_log && (config.logProbes || !isDullProbe(exchange))) accessLog.write(exchange);
    },
    /** Records an answer of a conversation that is over. */
    answered(answer: AnswerRecord): void {
      if (toggles.metrics) prometheus.answered(answer);
    },
    /** Begins to capture a request; null while capture is off. */
    beginCapture: (requestId: string, at: Date) =>
      toggles.payload ? withoutVoices(capture.begin(requestId, at)) : null,
    /** Why capture switched itself off, and when, since it was last on; null unless it did. */
    captureFailure: failure,
    /** The folders that are written to now, by what is in them. */
    folders: (): Record<string, string> => ({
      ...(toggles.payload && { captures: config.payloadDir }),
      ...(toggles.access_log && config.logDir !== '-' && { 'the access log': config.logDir }),
    }),
    /** Resolves when everything is on disk. */
    async close(): Promise<void> {
      retry.cancel();
      await Promise.all([capture.close(), accessLog.close()]);
      prometheus.close();
    },
  };
}

/** The switches, and the capture that turns its own off when the disk fails, and on again once that takes captures. */
function createSwitchedCapture(config: Config['observability'], log: Logger) {
  const { metrics, accessLog, payload, payloadDir: dir } = config;
  let isOn = payload;
  let failed: { at: Date; why: string } | null = null;
  const turn = (on: boolean) => {
    failed = null;
    isOn = on;
  };
  const retry = createCaptureRetry({ dir, log, resume: () => turn(true) });
  const capture = createCapture({
    dir,
    log,
    maxBytes: config.payloadMaxBytes,
    maxAgeMs: config.payloadMaxAgeMs,
    onFailure(error) {
      turn(false);
      failed = { at: new Date(), why: error.message };
      retry.failed();
    },
  });
  const toggles: Toggles = {
    metrics,
    access_log: accessLog,
    get payload() {
      return isOn;
    },
    set payload(on) {
      retry.cancel(); // what the operator says stays
      turn(on);
    },
  };
  return { capture, toggles, failure: () => failed, retry };
}

const PROBES = ['/health', '/ready', '/metrics'];

/** Orchestrators and Prometheus ask every few seconds. Their lines would hide the others, unless something is wrong. */
function isDullProbe({ method, path, status, class: outcome }: Exchange): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  if (!PROBES.includes(path ?? '')) return false;
  return outcome === '2xx' || (path === '/ready' && status === 503);
}
