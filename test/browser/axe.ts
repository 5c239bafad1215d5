/** Finds what cannot be read or used by everybody, in whichever state a page is. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

/** The themes, each at a width in px: axe-core finds at these what it finds at others. */
const SCENES = [
  { colorScheme: 'light', width: 1440 },
  { colorScheme: 'dark', width: 390 },
] as const;

/**
 * Fails where axe-core finds something, or something is wider than the window, in both themes, on a desktop and a phone.
 */
export async function assertUsable(page: Page, state: string): Promise<void> {
  for (const { colorScheme, width } of SCENES) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    const scene = `${state}: ${colorScheme}, ${width} px`;
    assert.deepEqual(await violations(page), [], scene);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width, scene);
  }
}

/**
 * What axe-core finds wrong. It would read imported styles in a way that the policy of the pages forbids; one rule, on
 * rotated screens, is left out then.
 */
export async function violations(page: Page): Promise<string[]> {
  if (!(await page.evaluate<boolean>('"axe" in globalThis'))) await page.evaluate(AXE);
  // Some colors fade from one theme to the other. To wait for `finished` may last for ever in Chromium.
  await page.evaluate(`document.getAnimations()
    .filter(({ effect }) => effect.getComputedTiming().iterations !== Infinity)
    .forEach((animation) => animation.finish())`);
  return await page.evaluate<
    string[]
  >(`axe.run({ preload: false, resultTypes: ['violations'] }).then(({ violations }) =>
    violations.flatMap(({ id, nodes }) => nodes.map(({ target, any }) => id + ' ' + target + ' ' + any.map((one) => one.message))))`);
}
