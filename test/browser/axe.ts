/** Finds what cannot be read or used by everybody, in whichever state a page is. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/**
 * What axe-core finds wrong. It would read imported styles in a way that the policy of the pages forbids; one rule, on
 * rotated screens, is left out then.
 */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  // Some colors fade from one theme to the other. To wait for `finished` may last for ever in Chromium.
  await page.evaluate(`document.getAnimations()
    .filter(({ effect }) => effect.getComputedTiming().iterations !== Infinity)
    .forEach((animation) => animation.finish())`);
  return await page.evaluate<string[]>(`axe.run({ preload: false }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, any }) => id + ' ' + target + ' ' + any.map((one) => one.message))))`);
}
