/** Requests made by chance from the description of the API, /admin included. test/deep/request-fuzz.test.ts has more. */
import { test } from 'node:test';
import { fuzzRequests } from '../request-fuzz/fuzz.ts';

test('whatever requests are made of, every answer is one that is meant', { timeout: 120_000 }, async (t) => {
  const { requests, statuses } = await fuzzRequests({ requests: 800, seed: 1 });
  t.diagnostic(`${requests} requests; ${JSON.stringify(statuses)}`);
});
