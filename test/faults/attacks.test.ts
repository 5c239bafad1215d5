/** While an attack runs, honest clients are served. test/deep/attacks.test.ts has more attacks, and each for longer. */
import { test } from 'node:test';
import { underAttack } from '../http/attack-scene.ts';

for (const attack of ['heads that trickle', 'forms of 10,000 fields'] as const)
  test(`under attack by ${attack}, honest clients are served for a moment`, {
    timeout: 60_000,
  }, async (t) => {
    const { asked, healthMs, bystanderMs, transcriptions } = await underAttack(attack, { forMs: 1500 });
    t.diagnostic(
      `${transcriptions} transcriptions; ${asked} x /health, p99 ${healthMs} ms, bystander ${bystanderMs} ms`,
    );
  });
