/** While an attack runs, honest clients are served: each attack for several seconds. */
import { test } from 'node:test';
import { ATTACKS } from '../http/attack-process.ts';
import { underAttack } from '../http/attack-scene.ts';

/** The honest client has an address of its own, as a proxy in front tells clients apart. */
const BEHIND_PROXY = { env: { SVC_TRUST_PROXY: 'loopback' }, headers: { 'X-Forwarded-For': '203.0.113.1' } };
const SCENES: Partial<Record<keyof typeof ATTACKS, Omit<Parameters<typeof underAttack>[1], 'forMs'>>> = {
  'uploads that trickle behind a proxy': BEHIND_PROXY,
  'uploads that trickle from 100 addresses': BEHIND_PROXY,
  'wrong keys': {
    env: { ...BEHIND_PROXY.env, SVC_API_KEY: 'k1' },
    headers: { ...BEHIND_PROXY.headers, Authorization: 'Bearer k1' },
  },
};

for (const attack of Object.keys(ATTACKS) as (keyof typeof ATTACKS)[])
  test(`under attack by ${attack}, honest clients are served`, { timeout: 120_000 }, async (t) => {
    const { asked, healthMs, bystanderMs, transcriptions } = await underAttack(attack, {
      forMs: 5000,
      ...SCENES[attack],
    });
    t.diagnostic(
      `${transcriptions} transcriptions; ${asked} x /health, p99 ${healthMs} ms, bystander ${bystanderMs} ms`,
    );
  });
