/**
 * Measures the cost of metrics and access log on the busiest path: small chat calls, one after the other, through a
 * gateway with them and one without, in turns. The gateway's processor time is compared beside the rate, because it
 * is far steadier.
 *
 *   npm run bench -- observability [--rounds 10 --requests 1000]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listening } from '../../test/local-server.ts';
import { startGatewayProcess } from '../common/gateway.ts';
import { median } from '../common/numbers.ts';
import { numberOptions } from '../common/options.ts';

const { rounds, requests } = numberOptions({ rounds: 10, requests: 1000 });
const logs = mkdtempSync(join(tmpdir(), 'voxgate-bench-logs-'));
await using upstream = await listening(
  createServer((req, res) => {
    req.resume();
    req.on('end', () => res.end('{"choices":[]}'));
  }),
);
const shared = { SVC_LLM_BACKEND_URL: upstream.base, SVC_OBS_LOG_DIR: logs };
await using on = await startGatewayProcess(shared);
await using off = await startGatewayProcess({
  ...shared,
  SVC_OBS_METRICS_ENABLED: '0',
  SVC_OBS_ACCESS_LOG_ENABLED: '0',
});
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const sides = [
  { name: 'off', gateway: off, perSec: [] as number[], cpuMicros: [] as number[] },
  { name: 'on', gateway: on, perSec: [] as number[], cpuMicros: [] as number[] },
];

for (const { gateway } of sides) for (let i = 0; i < 1000; i++) await call(gateway.base);
for (let round = 0; round < rounds; round++) {
  for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
    const cpu = side.gateway.cpuSec();
    const startedAt = performance.now();
    for (let i = 0; i < requests; i++) await call(side.gateway.base);
    side.perSec.push((requests * 1000) / (performance.now() - startedAt));
    side.cpuMicros.push(((side.gateway.cpuSec() - cpu) * 1e6) / requests);
  }
}
agent.destroy();
rmSync(logs, { recursive: true, force: true });

for (const { name, perSec, cpuMicros } of sides)
  process.stdout.write(
    `${name.padEnd(4)} ${median(perSec).toFixed(0)} requests/s, ${median(cpuMicros).toFixed(0)} µs of the gateway's processor time each\n`,
  );
const [without, withAll] = sides;
if (without && withAll) {
  const cost = (a: number[], b: number[]) => ((median(b) / median(a) - 1) * 100).toFixed(1);
  process.stdout.write(
    `watching costs ${cost(withAll.perSec, without.perSec)} % of the rate, ${cost(without.cpuMicros, withAll.cpuMicros)} % of the processor time\n`,
  );
}

function call(base: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json' };
    const req = request(`${base}/v1/chat/completions`, { method: 'POST', agent, headers }, (res) => {
      if (res.statusCode !== 200) reject(new Error(`status ${res.statusCode}`));
      res.resume();
      res.on('end', resolve);
    });
    req.on('error', reject);
    req.end('{"model":"m","messages":[]}');
  });
}
