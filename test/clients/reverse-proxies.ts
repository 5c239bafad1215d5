/** Starts the reverse proxies of Debian in front of a gateway, each on a free port of 127.0.0.1. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../bench/common/processes.ts';
import { until } from '../until.ts';

export const BALANCER_CONFIG = new URL('../../deploy/haproxy.cfg', import.meta.url).pathname;

export interface ReverseProxy extends AsyncDisposable {
  base: string;
  /** The requests that it has passed on and that are over, as `GET /path`, in the order of their ends. */
  passedOn(): string[];
}

/** @param lenient it also passes on what it would refuse or mend as invalid */
type Start = (gateway: string, options?: { lenient?: boolean }) => Promise<ReverseProxy>;

/** One connection to the gateway serves the requests of all clients. */
export const startHaproxy: Start = (gateway, { lenient = false } = {}) =>
  start(
    'haproxy',
    (port) => `global
  log stdout format raw local0 info
defaults
  mode http
  log global
  log-format "%s %HM %HU"
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend in
  bind 127.0.0.1:${port}
  default_backend gateway
  ${lenient ? 'option accept-invalid-http-request' : ''}
backend gateway
  http-reuse always
  retry-on conn-failure empty-response
  server one ${gateway.replace('http://', '')} maxconn 1
`,
    (config) => ['-f', config, '-db'],
  );

/** One connection to the gateway is kept for the requests of all clients. */
export const startNginx: Start = (gateway, { lenient = false } = {}) =>
  start(
    'nginx',
    (port, dir) =>
      nginxWith(
        dir,
        `${lenient ? 'ignore_invalid_headers off; underscores_in_headers on; merge_slashes off;' : ''}
  upstream gateway { server ${gateway.replace('http://', '')}; keepalive 1; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://gateway; proxy_http_version 1.1; client_max_body_size 0;
      proxy_set_header Connection ""; proxy_set_header Host $http_host;
      ${lenient ? 'proxy_request_buffering off; proxy_buffering off;' : ''}
    }
  }`,
      ),
    (config) => ['-c', config],
  );

/** nginx as a process without root, with these lines in its `http`, where Debian's includes conf.d. */
const nginxWith = (dir: string, lines: string) =>
  `daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/error.log;
events {}
http {
  log_format passed_on '$upstream_addr $request_method $request_uri';
  access_log ${dir}/log passed_on;
  client_body_temp_path ${dir}/a; proxy_temp_path ${dir}/b; fastcgi_temp_path ${dir}/c;
  uwsgi_temp_path ${dir}/d; scgi_temp_path ${dir}/e;
  ${lines}
}
`;

export const FRONT_PROXIES = ['nginx', 'caddy', 'haproxy'] as const;
export type FrontProxy = (typeof FRONT_PROXIES)[number];

const front = (file: string) =>
  readFileSync(new URL(`../../deploy/proxies/${file}`, import.meta.url), 'utf8');

/**
 * Runs a file of deploy/proxies/. Only addresses are replaced, and what a process without root cannot have.
 * @param idle the time that stands in the place of the 60 s for which connections to the gateway are kept
 */
export function startFrontProxy(
  name: FrontProxy,
  gateway: string,
  idle = '60s',
): Promise<ReverseProxy & { log(): string }> {
  const at = gateway.replace('http://', '');
  const files: Record<FrontProxy, (port: number, dir: string) => string> = {
    nginx: (port, dir) =>
      nginxWith(
        dir,
        front('nginx.conf')
          .replace('127.0.0.1:8000', at)
          .replace('listen 80;', `listen 127.0.0.1:${port};`)
          .replace('keepalive_timeout 60s;', `keepalive_timeout ${idle};`),
      ),
    caddy: (port) =>
      `{\nadmin off\n}\n${front('Caddyfile')
        .replaceAll('127.0.0.1:8000', at)
        .replace(/^voice\.example\.com/m, `http://127.0.0.1:${port}`)
        .replace('keepalive 60s', `keepalive ${idle}`)}`,
    haproxy: (port) =>
      withoutRoot(front('haproxy.cfg'))
        .replace('127.0.0.1:8000', at)
        .replace('bind :80\n', `bind 127.0.0.1:${port}\n`),
  };
  const args: Record<FrontProxy, (config: string) => string[]> = {
    nginx: (config) => ['-c', config],
    caddy: (config) => ['run', '--adapter', 'caddyfile', '--config', config],
    haproxy: (config) => ['-f', config, '-db'],
  };
  return start(name, files[name], args[name], 'ignore');
}

/** HAProxy as a process without root, which cannot become another user. */
const withoutRoot = (config: string) => config.replace(/^ {2}(user|group|chroot) .*\n/gm, '');

/** HAProxy before several gateways, as operators run it. */
export interface Balancer extends ReverseProxy {
  /** Everything that it has logged: a line for each request, and the states of the gateways. */
  log(): string;
  /** Where Prometheus asks it. */
  figures: string;
  /** Gives a command to its admin socket and resolves to the answer. */
  admin(command: string): Promise<string>;
  /** Resolves when the server `gateway{number}` of `inference` is in this state, as `UP` or `DOWN`. */
  becomes(number: number, status: string): Promise<void>;
}

/**
 * Runs deploy/haproxy.cfg. Only addresses are replaced, and the user that a process without root cannot become.
 * @param gateways the ports of the three gateways
 */
export async function startBalancer(gateways: readonly number[]): Promise<Balancer> {
  const figures = await freePort();
  let socket = '';
  const proxy = await start(
    'haproxy',
    (port, dir) => {
      socket = join(dir, 'admin.sock');
      const ports = [port, ...gateways];
      return withoutRoot(readFileSync(BALANCER_CONFIG, 'utf8'))
        .replace(/^( {2}bind ):800(0)$|( 127\.0\.0\.1):800([123])\b/gm, (...found) => {
          const [, bind, own, server, gateway] = found;
          return `${bind === undefined ? server : `${bind}127.0.0.1`}:${ports[Number(own ?? gateway)]}`;
        })
        .replace('127.0.0.1:8405', `127.0.0.1:${figures}`)
        .replace('/run/haproxy/admin.sock', socket);
    },
    (config) => ['-f', config, '-db'],
    'ignore', // it repeats the log
  );
  const admin = async (command: string) => {
    const connection = connect(socket);
    connection.end(`${command}\n`);
    return (await connection.setEncoding('utf8').toArray()).join('');
  };
  return Object.assign(proxy, {
    admin,
    figures: `http://127.0.0.1:${figures}/metrics`,
    async becomes(number: number, status: string) {
      const shown = async () => {
        const [names = '', ...rows] = (await admin('show stat')).replace(/^# /, '').split('\n');
        const row = rows.find((line) => line.startsWith(`inference,gateway${number},`)) ?? '';
        return row.split(',')[names.split(',').indexOf('status')];
      };
      await until(`gateway${number} is ${status}`, async () => (await shown()) === status, 20_000);
    },
  });
}

async function start(
  command: string,
  configure: (port: number, dir: string) => string,
  argsFor: (config: string) => string[],
  stderr: 'inherit' | 'ignore' = 'inherit',
): Promise<ReverseProxy & { log(): string }> {
  const dir = mkdtempSync(join(tmpdir(), `voxgate-${command}-`));
  const port = await freePort();
  const config = join(dir, 'config');
  writeFileSync(config, configure(port, dir));
  const log = join(dir, 'log');
  const output = openSync(log, 'a');
  // Caddy keeps files of its own, where these say.
  const env = { ...process.env, XDG_CONFIG_HOME: dir, XDG_DATA_HOME: dir };
  const child = spawn(command, argsFor(config), { env, stdio: ['ignore', output, stderr] });
  closeSync(output);
  await once(child, 'spawn');
  const base = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${base}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  try {
    await until(`${command} answers`, answers, 20_000);
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  }
  return {
    base,
    log: () => readFileSync(log, 'latin1'),
    passedOn: () =>
      readFileSync(log, 'latin1')
        .split('\n')
        .slice(0, -1)
        .filter((line) => !/^(-|<NOSRV>) /.test(line))
        .map((line) => line.replace(/^\S+ /, '')),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await once(child, 'exit');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
