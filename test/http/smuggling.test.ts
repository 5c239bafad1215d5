/** No request hides in another: what the gateway serves is what every server finds in the bytes, or nothing. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startHostileUpstream } from '../faults/hostile-upstream.ts';
import { AMBIGUOUS } from './ambiguous-requests.ts';
import { startGateway, until } from './harness.ts';
import { rawClient, statusesIn } from './raw-client.ts';

const upstream = await startHostileUpstream();
const gateway = await startGateway({ env: { SVC_TTS_UPSTREAM_URL: upstream.url } });
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

for (const [i, { name, bytes, serves }] of AMBIGUOUS.entries())
  test(`of a request and one that hides in it, ${serves} may be served: ${name}`, async () => {
    const [first, hidden] = [`/v1/audio/first-${i}`, `/hidden-${i}`];
    using client = rawClient(gateway.base, bytes(first, hidden));
    const wanted = serves === 'both' ? 2 : 1;
    await until(
      'every request is answered',
      () => client.closed() || statusesIn(client.said()).length >= wanted,
    );
    if (!client.closed()) client.socket.end();
    await until('no more comes', client.closed);
    const served = (path: string) => gateway.exchanges.filter((exchange) => exchange.path === path).length;
    const visits = upstream.heads.filter((head) => head.includes(first)).length;
    const isServed = { first: visits, hidden: served(hidden) };
    assert.deepEqual(
      isServed,
      {
        first: serves === 'first' || serves === 'both' ? 1 : 0,
        hidden: serves === 'hidden' || serves === 'both' ? 1 : 0,
      },
      client.said(),
    );
    if (serves === 'neither')
      assert.deepEqual(
        statusesIn(client.said()).map((status) => Math.floor(status / 100)),
        [4],
      );
  });
