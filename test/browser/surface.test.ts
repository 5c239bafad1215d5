/** The dashboard of a whole gateway behind a key, with only the engine scripted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { form, heard, post, startGateway, toneWav, until } from '../http/harness.ts';
import { browserOfFile, openPage, status } from './browser.ts';

const browser = await browserOfFile();

test('a reader who has signed in can sign out, and nothing is shown then', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'k1' } });
  await using open = await openPage(browser, `${gateway.base}/admin`);
  const { page } = open;
  const signOut = page.getByRole('button', { name: 'Sign out' });
  await page.locator('dialog[open] input').waitFor();
  assert.equal(await page.locator('#sign-out').isVisible(), false, 'there is no session yet');
  await page.locator('dialog[open] input').fill('k1');
  await page.locator('dialog[open] input').press('Enter');
  await page.getByText('Free', { exact: true }).waitFor();
  await signOut.waitFor();
  await page.reload();
  await page.getByText('Free', { exact: true }).waitFor();
  const [session] = await page.context().cookies(`${gateway.base}/admin`);
  await signOut.click();
  await page.locator('dialog[open] input').waitFor();
  assert.equal(await page.locator('#sign-out').isVisible(), false);
  assert.equal(await page.getByText('Free', { exact: true }).count(), 0);
  assert.deepEqual(await page.context().cookies(`${gateway.base}/admin`), []);
  const headers = { Cookie: `${session?.name}=${session?.value}` };
  assert.equal((await fetch(`${gateway.base}/admin/api/metrics`, { headers })).status, 401, 'it has ended');
});

test('a gateway without keys has nothing to sign out of', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/admin`);
  await open.page.getByText('Free', { exact: true }).waitFor();
  assert.equal(await open.page.locator('#sign-out').isVisible(), false);
});

test('the dashboard asks for the key once, then shows and steers the gateway', async () => {
  await using gateway = await startGateway({
    env: { SVC_API_KEY: 'k1', SVC_OBS_PAYLOAD_ENABLED: '1' },
    transcribe: (_samples, { language }, { signal }) =>
      language === 'de'
        ? new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
        : Promise.resolve(heard(' Hello there.')),
  });
  const headers = { Authorization: 'Bearer k1', 'X-Request-ID': 'first' };
  assert.equal((await post(gateway, form(toneWav(1), { language: 'en' }), { headers })).status, 200);

  await using open = await openPage(browser, `${gateway.base}/admin`);
  const { page } = open;
  await page.locator('dialog[open] input').fill('k1');
  await page.locator('dialog[open] input').press('Enter');
  await page.getByText('Free', { exact: true }).waitFor();

  const row = page.locator('.models tbody tr').filter({ hasText: 'multilingual-base' }).first();
  await row.getByText('in memory').waitFor();
  await row.getByRole('button', { name: /unload/i }).click();
  await row.getByText('in memory').waitFor({ state: 'detached' });

  const stuck = post(gateway, form(toneWav(1), { language: 'de' }), {
    headers: { Authorization: 'Bearer k1' },
  });
  await until('it runs', () => gateway.running() === 1);
  await status(page, /Busy/);
  await page.getByRole('button', { name: 'Stop the request that holds the slot' }).click();
  await page.locator('dialog[open]').getByRole('button', { name: /stop/i }).click();
  assert.equal((await stuck).status, 503);
  await page.getByText('Free', { exact: true }).waitFor();

  await page.getByRole('link', { name: 'first' }).click();
  await page.getByText('meta.json').first().waitFor();
  await page.getByRole('button', { name: 'Replay' }).click();
  await page.getByText('The same answer').waitFor();
});
