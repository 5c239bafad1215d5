/** Why an upstream cannot serve, as it is said where the fault is its certificate. */
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { test } from 'node:test';
import { certificateFor, trusting } from '../certificate.ts';
import { listening } from '../local-server.ts';

for (const [what, names, days, says] of [
  ['is right', 'IP:127.0.0.1', 2, '200'],
  ['has expired', 'IP:127.0.0.1', -1, 'tls has a certificate that has expired'],
  ['is for another name', 'DNS:other.test', 2, 'tls has a certificate for another name'],
] as const)
  test(`what is said of an upstream whose certificate ${what}`, async () => {
    using tls = certificateFor(names, days);
    await using server = await listening(createServer(tls, (_req, res) => res.end('{"data":[]}')));
    const url = server.base.replace('http:', 'https:');
    const program = `
      const { probe } = await import('./src/proxy/probe.ts');
      const asked = probe({ url: '${url}' }, '/v1/models', AbortSignal.timeout(20000));
      console.log(await asked.then(({ status }) => status, ({ kind, message }) => kind + ' ' + message));`;
    assert.equal(await trusting(tls.path, program), `${says}\n`);
  });
