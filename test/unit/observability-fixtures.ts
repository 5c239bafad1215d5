/** The tests of `src/observability/` share these fixtures. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import winston from 'winston';
import type { Exchange } from '../../src/observability/exchange.ts';
import type { PrometheusOptions } from '../../src/observability/prometheus.ts';

export function exchange(over: Partial<Exchange> = {}): Exchange {
  return {
    requestId: 'r1',
    at: new Date('2026-03-04T05:06:07.000Z'),
    method: 'POST',
    path: '/v1/audio/transcriptions',
    category: 'asr',
    provider: 'multilingual',
    status: 200,
    class: '2xx',
    latencyMs: 100,
    bytesIn: 10,
    bytesOut: 20,
    ...over,
  };
}

/** A gateway without models, upstreams and work. */
export const IDLE: PrometheusOptions = {
  knownModels: [],
  slot: () => ({ holder: null, heldForMs: 0, waiting: [] }),
  liveSessions: () => [],
  upstreams: { causes: ['refused', 'tls'], health: async () => [], nameOf: () => undefined },
  build: { version: '1.2.3', cpu: 'avx2', device: 'cpu' },
};

/** Makes a folder that is removed with the test. */
export function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-observability-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/**
 * Makes a folder that is a disk of its own, of 4 KiB pages; the test is skipped where that is not allowed.
 * @param kib size of the disk
 */
export async function onSmallDisk(t: TestContext, kib: number, body: (dir: string) => Promise<void>) {
  const dir = folder(t);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'tmpfs', dir]).status !== 0) {
    return t.skip('mounting a small disk needs root');
  }
  try {
    await body(dir);
  } finally {
    spawnSync('umount', ['-l', dir]);
  }
}

/** Makes a log that keeps its lines, as `level message`. */
export function recordingLog() {
  const lines: string[] = [];
  const log = winston.createLogger({ level: 'debug', silent: true });
  for (const level of ['error', 'warn', 'info', 'debug'] as const) {
    log[level] = ((message: string) => {
      lines.push(`${level} ${message}`);
      return log;
    }) as winston.LeveledLogMethod;
  }
  return { log, lines };
}
