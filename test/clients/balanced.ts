/** Three gateway processes over the scripted engine behind HAProxy with deploy/haproxy.cfg, as docs/scale.md has them. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../bench/common/processes.ts';
import { SCRIPTED, type Served, serve } from '../http/served.ts';
import { type Balancer, startBalancer } from './reverse-proxies.ts';

/** The gateways are called 1, 2 and 3, as in the configuration. */
export const NUMBERS = [1, 2, 3] as const;
export type GatewayNumber = (typeof NUMBERS)[number];

export interface BalancedGateways extends AsyncDisposable {
  base: string;
  balancer: Balancer;
  gateway(number: GatewayNumber): Served;
  /** Ends the process without a warning. */
  kill(number: GatewayNumber): Promise<void>;
  /** Starts the gateway again, and waits until the balancer uses it. */
  restart(number: GatewayNumber): Promise<void>;
  /** The lines of the access logs of all gateways that have been written so far. */
  accessLog(): { request_id: string; path: string; status: number }[];
}

export async function startBalancedGateways(settings: NodeJS.ProcessEnv = {}): Promise<BalancedGateways> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-balanced-'));
  const ports = await Promise.all(NUMBERS.map(() => freePort()));
  const own = { SVC_MAX_WAIT_SEC: '60', SVC_TRUST_PROXY: '1', SVC_TMP_DIR: dir };
  const start = (number: GatewayNumber) => {
    const logs = {
      SVC_OBS_ACCESS_LOG_ENABLED: '1',
      SVC_OBS_LOG_PROBES: '1',
      SVC_OBS_LOG_DIR: join(dir, `logs-${number}`),
    };
    return serve({ ...own, ...logs, ...settings, SVC_PORT: String(ports[number - 1]) }, SCRIPTED);
  };
  const running = new Map<GatewayNumber, Served>();
  let balancer: Balancer | undefined;
  const stop = async () => {
    await balancer?.[Symbol.asyncDispose]();
    await Promise.all([...running.values()].map((served) => served[Symbol.asyncDispose]()));
    rmSync(dir, { recursive: true, force: true });
  };
  const gateway = (number: GatewayNumber) => running.get(number) as Served;
  const starts = NUMBERS.map(async (number) => running.set(number, await start(number)));
  try {
    await Promise.all(starts);
    balancer = await startBalancer(ports);
    for (const number of NUMBERS) await balancer.becomes(number, 'UP');
  } catch (error) {
    // The process of the test runs for as long as one of its children does, so all that have started are stopped.
    await Promise.allSettled(starts);
    await stop();
    throw error;
  }
  const { base, becomes } = balancer;
  return {
    base,
    balancer,
    gateway,
    async kill(number) {
      gateway(number).child.kill('SIGKILL');
      await gateway(number).ended;
    },
    async restart(number) {
      running.set(number, await start(number));
      await becomes(number, 'UP');
    },
    accessLog: () =>
      readdirSync(dir, { recursive: true })
        .filter((name) => String(name).endsWith('.jsonl'))
        .flatMap((name) =>
          readFileSync(join(dir, String(name)), 'utf8')
            .split('\n')
            .slice(0, -1),
        )
        .map((line) => JSON.parse(line)),
    [Symbol.asyncDispose]: stop,
  };
}
