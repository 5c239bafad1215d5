/**
 * Measures the cost of passing a call on: one upstream is asked directly, through the gateway and through nginx, in
 * turns.
 *
 *   npm run bench -- proxy [--rounds 5 --requests 400 --gigabytes 1]
 *
 * Latency is that of one small POST after the other. Throughput is that of a long answer and of a long request.
 * Memory is the gateway's peak before and after those. nginx is set up to do the same: nothing buffered, a new
 * connection for every call.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { listening } from '../../test/local-server.ts';
import { startGatewayProcess } from '../common/gateway.ts';
import { median, percentile } from '../common/numbers.ts';
import { numberOptions } from '../common/options.ts';
import { tableOf } from '../common/page.ts';
import { answers, freePort, measured } from '../common/processes.ts';

const { rounds, requests, gigabytes } = numberOptions({ rounds: 5, requests: 400, gigabytes: 1 });
const bytes = Math.round(gigabytes * 1024 ** 3);
const BLOCK = Buffer.alloc(64 * 1024, 'x');
const PATH = '/v1/audio/speech';

await using upstream = await listening(
  createServer((req, res) => {
    const size = Number(/download=(\d+)/.exec(req.url ?? '')?.[1] ?? 0);
    req.resume();
    req.on('end', () => {
      if (size === 0) return res.end('{"ok":true}');
      res.setHeader('Content-Length', size);
      return pour(res, size);
    });
  }),
);
await using gateway = await startGatewayProcess({ SVC_TTS_UPSTREAM_URL: upstream.base });
await using nginx = await startNginx(upstream.base);
const ways = [
  { name: 'direct', base: upstream.base },
  { name: 'voxgate', base: gateway.base },
  ...(nginx === null ? [] : [{ name: 'nginx', base: nginx.base }]),
].map((way) => ({ ...way, latencyMs: [] as number[], down: [] as number[], up: [] as number[] }));

for (const way of ways) for (let i = 0; i < 100; i++) await call(way.base, 'small'); // this warms each way up
const peakBefore = gateway.peakMegabytes();
for (let round = 0; round < rounds; round++) {
  for (const way of ways.map((_, i) => ways[(i + round) % ways.length]).filter((w) => w !== undefined)) {
    for (let i = 0; i < requests; i++) way.latencyMs.push(await call(way.base, 'small'));
    const share = bytes / rounds;
    way.down.push(share / 1e6 / ((await call(way.base, 'download', share)) / 1000));
    way.up.push(share / 1e6 / ((await call(way.base, 'upload', share)) / 1000));
  }
}
const peakShare = gateway.peakMegabytes();
await call(gateway.base, 'download', bytes);
await call(gateway.base, 'upload', bytes);

const table = tableOf(ways, {
  way: ({ name }) => name,
  'latency p50, ms': ({ latencyMs }) => percentile(latencyMs, 50).toFixed(2),
  'p99, ms': ({ latencyMs }) => percentile(latencyMs, 99).toFixed(2),
  'download, MB/s': ({ down }) => median(down).toFixed(0),
  'upload, MB/s': ({ up }) => median(up).toFixed(0),
});
process.stdout.write(`${table}\n`);
process.stdout.write(
  `gateway's peak: ${peakBefore} MB warm, ${peakShare} MB after the rounds, ${gateway.peakMegabytes()} MB after one body of ${gigabytes} GB each way\n`,
);

/** Measures the milliseconds from the request to the last byte of its answer. */
function call(base: string, kind: 'small' | 'download' | 'upload', size = 0): Promise<number> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const headers = kind === 'upload' ? { 'Content-Length': String(Math.round(size)) } : {};
    const req = request(
      `${base}${PATH}?${kind}=${Math.round(size)}`,
      { method: 'POST', agent: false, headers },
      (res) => {
        if (res.statusCode !== 200) reject(new Error(`${base}: ${res.statusCode}`));
        res.resume();
        res.on('end', () => resolve(performance.now() - startedAt));
        res.on('error', reject);
      },
    );
    req.on('error', reject);
    if (kind === 'upload') pour(req, Math.round(size));
    else req.end('{"input":"hello"}');
  });
}

async function pour(out: NodeJS.WritableStream, size: number): Promise<void> {
  for (let left = size; left > 0; left -= BLOCK.length)
    if (!out.write(BLOCK.subarray(0, Math.min(left, BLOCK.length)))) await once(out, 'drain');
  out.end();
}

async function startNginx(target: string): Promise<(AsyncDisposable & { base: string }) | null> {
  if (spawnSync('nginx', ['-v']).error !== undefined) {
    process.stdout.write('nginx is not installed (apt-get install nginx-light): measured without it\n');
    return null;
  }
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-bench-nginx-'));
  const port = await freePort();
  writeFileSync(
    join(dir, 'nginx.conf'),
    `daemon off; worker_processes 1; pid ${dir}/pid; error_log ${dir}/error.log;
     events {}
     http {
       access_log off; client_body_temp_path ${dir}/a; proxy_temp_path ${dir}/b;
       fastcgi_temp_path ${dir}/c; uwsgi_temp_path ${dir}/d; scgi_temp_path ${dir}/e;
       server {
         listen 127.0.0.1:${port};
         location / {
           proxy_pass ${target}; proxy_http_version 1.1; proxy_read_timeout 600s;
           proxy_buffering off; proxy_request_buffering off; client_max_body_size 0;
         }
       }
     }`,
  );
  const child = spawn('nginx', ['-c', join(dir, 'nginx.conf')], { stdio: 'inherit' });
  const figures = measured(child);
  const base = `http://127.0.0.1:${port}`;
  await answers(`${base}/`, child);
  return {
    base,
    async [Symbol.asyncDispose]() {
      await figures[Symbol.asyncDispose]();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
