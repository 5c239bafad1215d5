/** Calls of an upstream that the gateway makes for itself. */
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { test } from 'node:test';
import { certificateFor, trusting } from '../certificate.ts';
import { listening } from '../local-server.ts';

test('each call over TLS has a connection of its own, so that its time to connect is not that of an earlier one', async () => {
  using tls = certificateFor('IP:127.0.0.1');
  const answers = createServer(tls, (_req, res) => res.end('said'));
  let connections = 0;
  answers.on('secureConnection', () => {
    connections += 1;
  });
  await using server = await listening(answers);
  const url = server.base.replace('http:', 'https:');
  const program = `
    const { ask } = await import('./src/proxy/upstream-call.ts');
    const { speechUpstream } = await import('./src/proxy/upstream.ts');
    const upstream = speechUpstream({ url: '${url}', timeoutMs: 20000, isConfigured: true });
    const limits = { errorBytes: 1000, errorMs: 1000 };
    const options = { signal: AbortSignal.timeout(20000), limits, requestId: 'r', isUpstreamsTurn: () => true };
    for (let i = 0; i < 2; i += 1)
      for await (const chunk of (await ask(upstream, '/', {}, options)).body) console.log(String(chunk));`;
  assert.equal(await trusting(tls.path, program), 'said\nsaid\n');
  assert.equal(connections, 2);
});
