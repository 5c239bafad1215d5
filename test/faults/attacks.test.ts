/** While an attack runs, honest clients are served. test/deep/attacks.test.ts has more attacks, and each for longer. */
import { test } from 'node:test';
import { underAttack } from '../http/attack-scene.ts';

const ATTACKS = [
  'heads that trickle',
  'forms of 10,000 fields',
  'every live flood at once',
  'every live flood at once from the same address',
  'every Wyoming flood at once',
] as const;

for (const attack of ATTACKS)
  test(`under attack by ${attack}, honest clients are served for a moment`, {
    timeout: 60_000,
  }, async (t) => {
    const { asked, healthMs, bystanderMs, transcriptions } = await underAttack(attack, { forMs: 1500 });
    t.diagnostic(
      `${transcriptions} transcriptions; ${asked} x /health, p99 ${healthMs} ms, bystander ${bystanderMs} ms`,
    );
  });
