/**
 * Lighthouse's figures of the pages: accessibility 100, performance 95 or more. The network is simulated, so that what else
 * the machine does matters for computing only.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import lighthouse, { type Config } from 'lighthouse';
import type { Browser } from 'playwright-core';
import { startGateway } from '../http/harness.ts';
import { launchBrowser } from './browser.ts';

/** Lighthouse's benchmark index of a common laptop. Times on a slower or busier machine are scaled to it. */
const LAPTOP = 1500;
/** Below this the machine is so busy that a load says more about it than about the page. */
const TOO_BUSY = 500;
/** Other work on the machine can slow one load down, so the best of some counts. */
const TRIES = 3;

let browser: Browser;
let port: number;
before(async () => {
  port = await freePort();
  browser = await launchBrowser(`--remote-debugging-port=${port}`);
});
after(() => browser?.close());

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert(typeof address === 'object' && address !== null);
  await new Promise((resolve) => server.close(resolve));
  return address.port;
}

interface Figures {
  accessibility: number;
  performance: number;
  /** What is wrong with each, in words. */
  wrong: string[];
  speed: number;
}

async function measure(url: string, { settings: own, ...config }: Config, share: number): Promise<Figures> {
  const { cpuSlowdownMultiplier = 1, ...network } = own?.throttling ?? {};
  const throttling = { ...network, cpuSlowdownMultiplier: cpuSlowdownMultiplier * share };
  const settings = {
    ...own,
    ...{ throttling, onlyCategories: ['accessibility', 'performance'] },
    // The dashboard polls, so the network is never quiet for long.
    ...{ maxWaitForLoad: 15_000, networkQuietThresholdMs: 500, cpuQuietThresholdMs: 500 },
  };
  const result = await lighthouse(url, { port, logLevel: 'error' }, { ...config, settings });
  assert(result !== undefined);
  const { audits, categories, environment, runtimeError } = result.lhr;
  assert.equal(runtimeError, undefined, runtimeError?.message);
  const score = (name: string) => Math.round((categories[name]?.score ?? 0) * 100);
  const counted = Object.values(categories).flatMap(({ auditRefs }) =>
    auditRefs.filter((one) => one.weight > 0),
  );
  const wrong = counted.flatMap(({ id }) => {
    const audit = audits[id];
    return audit === undefined || audit.score === null || audit.score >= 0.9
      ? []
      : [`${audit.title}: ${audit.displayValue ?? 'failed'}`];
  });
  return {
    ...{ accessibility: score('accessibility'), performance: score('performance'), wrong },
    speed: environment.benchmarkIndex,
  };
}

const LEAST = 95;

/** Tests every page as Lighthouse loads it on a device. */
export function testPages(device: string, config: Config): void {
  for (const path of ['playground', 'admin', 'docs'])
    test(`Lighthouse finds /${path} accessible, and ${LEAST} or more for its speed on a ${device}`, async (t) => {
      await using gateway = await startGateway();
      let share = 1;
      const slow: string[] = [];
      for (let tries = 0; tries < TRIES; tries++) {
        const { accessibility, performance, wrong, speed } = await measure(
          `${gateway.base}/${path}`,
          config,
          share,
        );
        t.diagnostic(`accessibility ${accessibility}, performance ${performance}, machine ${speed}`);
        assert.equal(accessibility, 100, wrong.join('\n'));
        if (performance >= LEAST) return;
        if (speed >= TOO_BUSY) slow.push(`${performance} ${wrong}`);
        share = Math.min(1, speed / LAPTOP);
      }
      if (slow.length === 0) t.diagnostic('the machine is too busy to tell how fast the page is');
      assert.deepEqual(slow, []);
    });
}
