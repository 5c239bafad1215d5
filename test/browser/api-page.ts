/** What the tests of the page of the API do with it, in `test/browser/` and in `test/deep/`. */
import type { Locator, Page } from 'playwright-core';
import { toneWav } from '../http/harness.ts';

export const CLIP = { name: 'clip.wav', mimeType: 'audio/wav', buffer: toneWav(1) };

/** The operations in the order of the page: each with its name and its element. */
export async function shown(page: Page): Promise<{ name: string; block: Locator }[]> {
  await page.locator('.opblock').first().waitFor();
  const found = await page.evaluate<{ id: string; name: string }[]>(
    `[...document.querySelectorAll('.opblock')].map((block) => ({
      id: block.id,
      name: block.querySelector('.opblock-summary-method').textContent.toLowerCase() + ' ' +
        block.querySelector('[data-path]').dataset.path,
    }))`,
  );
  return found.map(({ id, name }) => ({ name, block: page.locator(`[id="${id}"]`) }));
}

export const toggle = (block: Locator) => block.locator('.opblock-summary-control').click();

/** Chooses a file where one is asked for, presses Execute, and says which status the page shows. */
export async function execute(block: Locator): Promise<string> {
  const button = block.getByRole('button', { name: 'Execute' });
  await button.waitFor();
  for (const input of await block.locator('input[type=file]').all()) await input.setInputFiles(CLIP);
  await button.click();
  return (await block.locator('.live-responses-table tbody .response-col_status').innerText()).trim();
}
