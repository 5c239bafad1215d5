/** What the dashboard says of trouble, in a real browser: in its first line and in the tab. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Admin, exchange, startAdmin } from '../http/admin-fixture.ts';
import { sideBySide } from '../side-by-side.ts';
import { until } from '../until.ts';
import { violations } from './axe.ts';
import { browserOfFile, openPage, press } from './browser.ts';

const browser = await browserOfFile();

const icon = (page: Page) =>
  page.evaluate<string>(`document.querySelector('link[rel="icon"]').href.split('/').at(-1)`);
const shows = (page: Page, title: string, picture: string) =>
  until(
    `the tab shows ${title}`,
    async () => (await page.title()) === title && (await icon(page)) === picture,
  );

const full = () => ({
  ...{ key: 'disk', level: 'bad', says: 'The disk of models is full', short: 'disk full' },
  ...{ detail: '12 MiB free', since: new Date() },
});

async function calm(): Promise<Admin> {
  const admin = await startAdmin();
  admin.models.length = 0;
  return admin;
}

const KEYS = 'SVC_TTS_API_KEY,SVC_LLM_API_KEY';

/** The dashboard asks again every few seconds. */
sideBySide(() => {
  test('the first line, the title and the icon show trouble, busy, and that it is over', async () => {
    await using admin = await calm();
    await using open = await openPage(browser, `${admin.base}/admin`);
    const { page } = open;
    await page.getByText('All is well.').waitFor();
    await shows(page, 'Dashboard · voxgate', 'voxgate.svg');
    const hold = admin.slot.take('asr', 'held');
    await shows(page, '▶ Busy · voxgate', 'voxgate-busy.svg');
    admin.troubles.push(full() as never);
    await shows(page, '⛔ Disk full · voxgate', 'voxgate-bad.svg');
    const line = page.locator('#state [role=status]');
    assert.match(
      (await line.textContent()) ?? '',
      /^The disk of models is full since \d\d:\d\d:\d\d 12 MiB free$/,
    );
    admin.troubles.pop();
    hold[Symbol.dispose]();
    await shows(page, 'Dashboard · voxgate', 'voxgate.svg');
    const response = await page.request.get(`${admin.base}/assets/voxgate-warn.svg`);
    assert.equal(response.status(), 200);
  });

  test('the tab says that the gateway is away, and no more once it is back', async () => {
    await using admin = await calm();
    await using open = await openPage(browser, `${admin.base}/admin`);
    const { page } = open;
    await page.getByText('All is well.').waitFor();
    await admin.goAway();
    await shows(page, '⛔ Not reachable · voxgate', 'voxgate-bad.svg');
    await admin.comeBack();
    await shows(page, 'Dashboard · voxgate', 'voxgate.svg');
  });

  test('a hidden page still asks for its state, seldom, and for nothing else', async () => {
    await using admin = await calm();
    await using open = await openPage(browser, `${admin.base}/admin`);
    const { page } = open;
    await page.clock.install();
    await page.reload();
    await page.getByText('All is well.').waitFor();
    const asked: string[] = [];
    await page.evaluate(`Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })`);
    // What was under way when the page was hidden does not count.
    await page.waitForLoadState('networkidle');
    page.on('request', (request) => {
      const { pathname } = new URL(request.url());
      if (!pathname.startsWith('/assets/')) asked.push(pathname);
    });
    admin.troubles.push(full() as never);
    for (let sec = 0; sec < 16; sec += 2) {
      await page.clock.runFor(2000);
      await page.waitForTimeout(100); // an answer comes before the next question
    }
    await until('the tab shows it', async () => (await page.title()).startsWith('⛔'));
    assert.deepEqual([...new Set(asked)], ['/admin/fragments/state']);
    assert(asked.length <= 2, asked.join(' '));
  });

  test('requests are filtered and searched from the keyboard, and stay so while the page polls', async () => {
    await using admin = await calm();
    admin.metrics.record(exchange({ requestId: 'fine' }));
    const failure = { status: 400, class: '4xx', errorCode: 'invalid_value', errorMessage: 'no' } as const;
    admin.metrics.record(exchange({ requestId: 'wrong', at: new Date(Date.now() + 1000), ...failure }));
    await using open = await openPage(browser, `${admin.base}/admin`);
    const { page } = open;
    const ids = () => page.locator('.requests tbody td:last-child').allTextContents();
    const listed = (...wanted: string[]) =>
      until(
        `${wanted} are listed`,
        async () => (await ids()).map((id) => id.trim()).join() === wanted.join(),
      );
    await listed('wrong', 'fine');
    await page.getByRole('radio', { name: 'All' }).focus();
    await page.keyboard.press('ArrowRight');
    await listed('wrong');
    admin.metrics.record(exchange({ requestId: 'later', ...failure, at: new Date(Date.now() + 2000) }));
    await listed('later', 'wrong');
    await page.keyboard.press('Tab');
    await page.keyboard.type('LATE');
    await listed('later');
    await page.keyboard.press('Enter');
    assert.equal(new URL(page.url()).search, '', 'the form itself is never sent');
    await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('ArrowLeft');
    await listed('later');
  });

  test('a request is read without scrolling sideways, on a phone and a tablet too, and is still a row of a table', async () => {
    await using admin = await calm();
    const failure = { status: 400, class: '4xx', errorCode: 'invalid_value' } as const;
    const errorMessage = 'temperature must not be "warm". Expected 0 to 1';
    admin.metrics.record(exchange({ requestId: 'wrong', ...failure, errorMessage }));
    await using open = await openPage(browser, `${admin.base}/admin`);
    const { page } = open;
    const region = page.getByRole('region', { name: 'Latest requests' });
    const row = region.getByRole('row').filter({ hasText: 'wrong' });
    await row.waitFor();
    const hidden = `(() => {
      const { scrollWidth, clientWidth } = document.querySelector('.requests').parentElement;
      return scrollWidth - clientWidth;
    })()`;
    for (const width of [390, 820, 1030]) {
      await page.setViewportSize({ width, height: 800 });
      const frame = await region.boundingBox();
      assert(frame !== null);
      for (const shown of ['400', 'invalid_value', errorMessage, '10.0.0.7', '812 ms', 'wrong']) {
        const box = await row.getByText(shown).last().boundingBox();
        assert(
          box !== null && box.x >= frame.x && box.x + box.width <= frame.x + frame.width,
          `${shown} is outside`,
        );
      }
      assert.equal(await page.evaluate<number>(hidden), 0);
    }
    assert.equal(await row.getByRole('cell').count(), 9);
    assert.equal(await region.getByRole('columnheader').count(), 9);
  });

  test('the settings are opened and searched from the keyboard', async () => {
    await using admin = await calm();
    await using open = await openPage(browser, `${admin.base}/admin`);
    const { page } = open;
    await page.locator('summary', { hasText: 'Settings' }).focus();
    await page.keyboard.press('Enter');
    const names = () => page.locator('.settings tr:has(th[scope="row"]) th code').allTextContents();
    await until('all are there', async () => (await names()).length > 50);
    await page.keyboard.press('Tab');
    await page.keyboard.type('Bearer');
    await until('two are found', async () => (await names()).join() === KEYS);
    await page.keyboard.press('Enter');
    assert.equal(new URL(page.url()).search, '', 'the form itself is never sent');
    await page.setViewportSize({ width: 390, height: 800 });
    assert.deepEqual(await violations(page), []);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  });

  test('a model is removed after a question', async () => {
    await using admin = await startAdmin();
    await using open = await openPage(browser, `${admin.base}/admin`);
    const { page } = open;
    await press(page, 'Remove multilingual-tiny');
    await press(page, 'Cancel');
    assert.deepEqual(admin.asked, []);
    await press(page, 'Remove multilingual-tiny');
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Removing multilingual-tiny from disk.').waitFor();
    assert.deepEqual(admin.asked, ['remove multilingual-tiny']);
  });

  test('a capture is heard and read, with the keyboard, and axe-core finds no violation', async () => {
    await using admin = await calm();
    admin.captured.add('form');
    await using open = await openPage(browser, `${admin.base}/admin/captures/form`);
    const { page } = open;
    const audio = page.locator('audio').first();
    await audio.focus();
    await page.keyboard.press('Space');
    await until('it has been played', () =>
      page.evaluate<boolean>(`document.querySelector('audio').currentTime > 0`),
    );
    assert.equal(await page.evaluate(`Math.round(document.querySelector('audio').duration)`), 1);
    assert.equal(await page.getByText('<b>de</b>').isVisible(), true);
    assert.deepEqual(await violations(page), []);
  });
}, 3);
