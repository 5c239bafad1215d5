/** As in test/browser/docs.test.ts, in the other theme. */
import { test } from 'node:test';
import { executeEveryOperation } from '../browser/api-page.ts';
import { launchBrowser } from '../browser/browser.ts';

test('Execute is answered on every operation in the dark theme, too', async (t) => {
  await using browser = await launchBrowser();
  await executeEveryOperation(t, browser, 'dark');
});
