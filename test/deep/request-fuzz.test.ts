/** Many requests made by chance from the description of the API; the next seed is another sample. */
import { test } from 'node:test';
import { fuzzRequests } from '../request-fuzz/fuzz.ts';

test('whatever 10,000 requests are made of, every answer is one that is meant', {
  timeout: 600_000,
}, async (t) => {
  const { requests, statuses } = await fuzzRequests({ requests: 10_000, seed: 2 });
  t.diagnostic(`${requests} requests; ${JSON.stringify(statuses)}`);
});
