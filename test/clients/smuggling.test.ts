/**
 * Real reverse proxies pass ambiguous requests on to the gateway, over the connection that they also use for other
 * clients. The gateway must find no request there that the proxy does not know of, and everybody gets their own answer.
 */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { startHostileUpstream } from '../faults/hostile-upstream.ts';
import { AMBIGUOUS } from '../http/ambiguous-requests.ts';
import { startGateway, until } from '../http/harness.ts';
import { rawClient, statusesIn } from '../http/raw-client.ts';
import { startHaproxy, startNginx } from './reverse-proxies.ts';

/** How long an attacker waits for an answer. Where a proxy waits for more bytes, none comes. */
const PATIENCE_MS = 100;

for (const [name, start] of [
  ['nginx', startNginx],
  ['HAProxy', startHaproxy],
] as const)
  for (const lenient of [false, true])
    test(`behind ${lenient ? 'a lenient ' : ''}${name} no request hides in another`, async (t) => {
      await using upstream = await startHostileUpstream();
      await using gateway = await startGateway({ env: { SVC_TTS_UPSTREAM_URL: upstream.url } });
      const ports = new Map<string, number | undefined>();
      gateway.app.server.on('request', (req) => ports.set(req.url ?? '', req.socket.remotePort));
      await using proxy = await start(gateway.base, { lenient });
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const bystander = (path: string) => get(proxy.base, path, agent);
      const faults: string[] = [];
      let [shared, refused] = [0, 0];

      for (const [i, attack] of AMBIGUOUS.entries()) {
        const [first, hidden, other] = [`/v1/audio/first-${i}`, `/hidden-${i}`, `/bystander-${i}`];
        using client = rawClient(proxy.base, attack.bytes(first, hidden));
        const wanted = attack.serves === 'both' ? 2 : 1;
        const deadline = Date.now() + (attack.serves === 'both' ? 5000 : PATIENCE_MS);
        await until(
          'it is answered, or patience ends',
          () => client.closed() || statusesIn(client.said()).length >= wanted || Date.now() > deadline,
        );
        const said = client.said();
        client.socket.destroy();
        for (const path of [other, `${other}-again`]) {
          const seen = await bystander(path);
          if (seen.status !== 404 || seen.id !== path.slice(1) || !seen.body.includes(`GET ${path}"`))
            faults.push(`${attack.name}: the bystander got ${JSON.stringify(seen)}`);
        }
        const passed = () => count(proxy.passedOn(), first, hidden);
        const served = count(
          gateway.exchanges.map(({ method, path }) => `${method} ${path}`),
          first,
          hidden,
        );
        await until(
          'the proxy has counted',
          () => passed()[0] >= served[0] && passed()[1] >= served[1],
        ).catch(() => faults.push(`${attack.name}: passed on ${passed()}, served ${served}\n${said}`));
        if (ports.has(first) && ports.get(first) === ports.get(other)) shared += 1;
        if (served[0] + served[1] === 0) refused += 1;
      }
      agent.destroy();
      assert.deepEqual(faults, []);
      t.diagnostic(
        `${AMBIGUOUS.length} tried; ${refused} served neither; ${shared} shared the bystander's connection`,
      );
      assert(shared > 5);
    });

const count = (requests: string[], ...paths: [string, string]) =>
  paths.map((path) => requests.filter((line) => line.split(' ')[1]?.endsWith(path)).length) as [
    number,
    number,
  ];

function get(base: string, path: string, agent: Agent) {
  return new Promise<{ status: number | undefined; id: unknown; body: string }>((resolve, reject) => {
    const options = {
      agent,
      headers: { 'X-Request-ID': path.slice(1) },
      signal: AbortSignal.timeout(20_000),
    };
    const req = request(base + path, options, (res) => {
      let body = '';
      res.on('data', (data) => {
        body += data;
      });
      res.once('error', reject);
      res.once('end', () => resolve({ status: res.statusCode, id: res.headers['x-request-id'], body }));
    });
    req.once('error', reject).end();
  });
}
