/** Many requests made by chance from the description of the API; the next seed is another sample. */
import { test } from 'node:test';
import { fuzzRequests } from '../request-fuzz/fuzz.ts';

for (const seed of [2, 3])
  test(`whatever requests are made of, every answer is one that is meant, with seed ${seed}`, {
    timeout: 600_000,
  }, async (t) => {
    const { requests, statuses } = await fuzzRequests({ requests: 10_000, seed });
    t.diagnostic(`${requests} requests; ${JSON.stringify(statuses)}`);
  });
