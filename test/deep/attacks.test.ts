/** While an attack runs, honest clients are served: each attack for several seconds. */
import { test } from 'node:test';
import { ATTACKS } from '../http/attack-process.ts';
import { underAttack } from '../http/attack-scene.ts';

/** What is not held yet, and why. */
const OPEN: Partial<Record<keyof typeof ATTACKS, string>> = {
  'uploads that trickle':
    'a burst of new slow uploads takes all places for up to two seconds, and others are refused meanwhile',
};

for (const attack of Object.keys(ATTACKS) as (keyof typeof ATTACKS)[])
  test(`under attack by ${attack}, honest clients are served`, {
    timeout: 120_000,
    skip: OPEN[attack] ?? false,
  }, async (t) => {
    // The attacker and the honest client have different addresses, as a proxy in front tells them apart.
    const env = { SVC_API_KEY: 'k1', SVC_TRUST_PROXY: 'loopback' };
    const headers = { Authorization: 'Bearer k1', 'X-Forwarded-For': '203.0.113.1' };
    const keyed = attack === 'wrong keys' ? { env, headers } : {};
    const { asked, healthMs, bystanderMs, transcriptions } = await underAttack(attack, {
      ...{ forMs: 5000, ...keyed },
    });
    t.diagnostic(
      `${transcriptions} transcriptions; ${asked} x /health, p99 ${healthMs} ms, bystander ${bystanderMs} ms`,
    );
  });
