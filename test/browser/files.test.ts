/** Several files in the playground: a list that does one after the other, opens each, and gives all away at once. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { unzipSync } from 'fflate';
import type { Download, Page } from 'playwright-core';
import { type Gateway, heard, type Script, startGateway, toneWav, until } from '../http/harness.ts';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { joinWavs, wav } from '../wav.ts';
import { assertUsable, violations } from './axe.ts';
import { browserOfFile, openPage, press, status, tooWide } from './browser.ts';

const browser = await browserOfFile();

const playground = (gateway: Pick<Gateway, 'base'>, options = {}) =>
  openPage(browser, `${gateway.base}/playground`, options);
const twoBursts = joinWavs(toneWav(1), toneWav(3, 0), toneWav(1));
const asFile = (name: string, buffer = twoBursts) => ({ name, mimeType: 'audio/wav', buffer });
const choose = (page: Page, ...files: ReturnType<typeof asFile>[]) =>
  page.getByLabel('Choose a file').setInputFiles(files);
const row = (page: Page, name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) });
const focused = (page: Page) =>
  page.evaluate<string>('document.activeElement.getAttribute("aria-label") ?? document.activeElement.id');

async function download(page: Page, button: string): Promise<{ name: string; bytes: Buffer }> {
  const [file]: [Download, unknown] = await Promise.all([page.waitForEvent('download'), press(page, button)]);
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

/** Every chunk waits until it is let go, with a text of its own. */
function held(): Script & { count(): number; next(): Promise<void>; forget(): void } {
  let waiting: (() => void)[] = [];
  let said = 0;
  return {
    transcribe: (_samples, _options, { signal }) =>
      new Promise((resolve, reject) => {
        waiting.push(() => resolve(heard(` Text <i>${++said}</i>.`)));
        signal?.addEventListener('abort', () => reject(signal.reason));
      }),
    count: () => waiting.length,
    // After a cancel the slot is held for another moment, in which the next request meets it: the page waits and tries again.
    async next() {
      await until('a chunk is heard', () => waiting.length > 0, 20_000);
      waiting.shift()?.();
    },
    forget() {
      waiting = [];
    },
  };
}

test('several files are transcribed one after the other, each with its progress, and one can be cancelled and tried again', async () => {
  const script = held();
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, asFile('a.wav'), asFile('b.wav'), asFile('c.wav'), asFile('d.wav'));
  await status(page, 'Ready: 4 files.');
  await row(page, 'a.wav').getByText('0:05').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Download all' }).isDisabled(), true);
  await press(page, 'Cancel d.wav');
  await row(page, 'd.wav').getByText('Cancelled').waitFor();
  assert.equal(await focused(page), 'Try again d.wav', 'the focus stays in the row');
  await press(page, 'Transcribe');
  await script.next();
  await row(page, 'a.wav')
    .getByText(/^0:0[01] of 0:05$/)
    .waitFor();
  await until('the other chunk is heard', () => script.count() > 0);
  assert.match(await row(page, 'b.wav').innerText(), /Waiting/);
  assert.equal(gateway.running(), 1);
  await script.next();
  await row(page, 'a.wav').getByText('Done').waitFor();
  await until('a chunk of the second is heard', () => script.count() > 0, 20_000);
  await press(page, 'Cancel b.wav');
  await row(page, 'b.wav').getByText('Cancelled').waitFor();
  await until('a chunk of the third is heard', () => script.count() > 1, 20_000);
  await press(page, 'Cancel');
  await status(page, 'Cancelled.');
  await row(page, 'c.wav').getByText('Waiting').waitFor();
  script.forget();
  await press(page, 'Try again b.wav');
  for (let chunks = 0; chunks < 4; chunks++) await script.next();
  await status(page, 'Done: 3 of 4 files.');
  assert.match(await row(page, 'a.wav').innerText(), /Text <i>1<\/i>\. Text <i>2<\/i>\./);
  assert.deepEqual(await violations(page), []);
});

test('a file that fails says why in its row, the others go on, and another start tries it again', async () => {
  let isBroken = true;
  await using gateway = await startGateway({ transcribe: async () => heard(' Fine.') });
  await using open = await playground(gateway);
  const { page } = open;
  let asked = 0;
  await page.route('**/v1/audio/transcriptions', (route) =>
    asked++ === 0 && isBroken
      ? route.fulfill({ status: 400, json: { error: { message: 'It is <b>broken</b>', request_id: 'abc' } } })
      : route.continue(),
  );
  await choose(page, asFile('bad.wav'), asFile('good.wav'));
  await press(page, 'Transcribe');
  await status(page, 'Done: 1 of 2 files, 1 failed.');
  assert.match(await row(page, 'bad.wav').innerText(), /Failed\s+It is <b>broken<\/b>\. Request id: abc/);
  isBroken = false;
  await press(page, 'Transcribe');
  await status(page, 'Done: 2 of 2 files.');
  assert.match(await row(page, 'bad.wav').innerText(), /Done\s+Fine\. Fine\./);
  assert.equal(asked, 3, 'the one that was done is not done again');
});

test('a file is opened in the player with its sound and text, and the list comes back', async () => {
  let said = 0;
  await using gateway = await startGateway({ transcribe: async () => heard(` One ${++said}. Two ${said}.`) });
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, asFile('first.wav'), asFile('second.wav'));
  await press(page, 'Transcribe');
  await status(page, 'Done: 2 of 2 files.');
  await press(page, 'Open second.wav');
  assert.equal(await focused(page), 'files-back');
  await page.getByRole('heading', { name: 'second.wav' }).waitFor();
  assert.equal(await page.getByRole('table').isVisible(), false);
  assert.deepEqual(await page.locator('.said').allInnerTexts(), ['One 3.', 'Two 3.', 'One 4.', 'Two 4.']);
  await page.locator('.time').filter({ hasText: '0:00 / 0:05' }).waitFor();
  await page.locator('.said').last().locator('.word').first().click();
  assert((await page.locator('.word.now').allInnerTexts()).length === 1);
  await page.locator('#exports summary').click();
  assert.equal((await download(page, 'Download srt')).name, 'second.srt');
  assert.deepEqual(await violations(page), []);

  await page.locator('.said').first().locator('.word').first().dblclick();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('Edited.');
  await page.keyboard.press('Enter');
  await press(page, 'All files');
  await row(page, 'second.wav')
    .getByText(/^Edited\. Two 3\./)
    .waitFor();
  const saved = await download(page, 'Download second.wav');
  assert.match(saved.bytes.toString(), /^Edited\. Two 3\./);
  await press(page, 'Open second.wav');

  await press(page, 'Transcribe');
  await status(page, 'Done: 4 segments.');
  assert.equal((await page.locator('.said').allInnerTexts())[0], 'One 5.');
  await page.keyboard.press('Tab');
  await page.getByRole('button', { name: 'All files' }).press('Enter');
  await status(page, 'Done: 2 of 2 files.');
  assert.equal(await focused(page), 'Open second.wav');
  assert.match(await row(page, 'second.wav').innerText(), /One 5\. Two 5\./);
  assert.match(await row(page, 'first.wav').innerText(), /One 1\. Two 1\./);
  assert.deepEqual(await page.locator('.said').allInnerTexts(), []);
  assert.equal(await page.getByRole('heading', { name: 'second.wav' }).isVisible(), false);
});

test('a file can be read while the next one is transcribed, which goes on', async () => {
  const script = held();
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, asFile('first.wav'), asFile('second.wav'));
  await press(page, 'Transcribe');
  await script.next();
  await script.next();
  await press(page, 'Open first.wav');
  await until('the second is heard', () => script.count() > 0);
  assert.equal(await page.getByRole('button', { name: 'Measure word times' }).isVisible(), false);
  await press(page, 'All files');
  await script.next();
  await row(page, 'second.wav')
    .getByText(/ of 0:05$/)
    .waitFor();
  await script.next();
  await status(page, 'Done: 2 of 2 files.');
});

test('all texts come in one zip, under names that are safe and differ, with the names of their speakers', async () => {
  await using gateway = await startGateway({
    speakers: scriptedVoices(),
    transcribe: async () =>
      heard(Array.from({ length: 24 }, (_, i) => ` w${i}${i === 23 ? '.' : ''}`).join(''), 500),
  });
  await using open = await playground(gateway);
  const { page } = open;
  const call = wav(conversation(inTurns(2, 12), 12));
  const names = ['call.wav', 'CALL.mp3', 'a:b?.wav', 'con.wav', '.hidden.wav'];
  await choose(page, ...names.map((name) => asFile(name, call)));
  await page.getByLabel('Tell speakers apart').check();
  await press(page, 'Transcribe');
  await status(page, 'Done: 5 of 5 files.');
  await press(page, 'Open call.wav');
  await page.getByLabel('Name of speaker A').fill('Ada');
  await press(page, 'All files');
  await press(page, 'Open CALL.mp3');
  assert.equal(
    await page.getByLabel('Name of speaker A').inputValue(),
    'A',
    'another file has other speakers',
  );
  await press(page, 'All files');
  await press(page, 'Open call.wav');
  assert.equal(await page.getByLabel('Name of speaker A').inputValue(), 'Ada');
  await press(page, 'All files');
  await page.getByLabel('Save as').selectOption('srt');
  const zip = await download(page, 'Download all');
  await status(page, '5 files are in the zip.');
  assert.equal(zip.name, 'transcripts.zip');
  const entries = unzipSync(zip.bytes);
  assert.deepEqual(Object.keys(entries), ['call.srt', 'CALL (2).srt', 'a_b_.srt', '_con.srt', '_hidden.srt']);
  const text = (name: string) => Buffer.from(entries[name] ?? []).toString();
  assert.match(text('call.srt'), /^1\n00:00:00,\d+ --> .*\nAda: w0 /);
  assert.match(text('CALL (2).srt'), /^1\n00:00:00,\d+ --> .*\nA: w0 /);
  const one = await download(page, 'Download call.wav');
  assert.equal(one.name, 'call.srt');
  assert.equal(one.bytes.toString(), text('call.srt'));
});

test('one more file joins the list, and the list can be cleared', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' Fine.') });
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, asFile('a.wav'), asFile('b.wav'));
  await press(page, 'Transcribe');
  await status(page, 'Done: 2 of 2 files.');
  await press(page, 'Open a.wav');
  await choose(page, asFile('c.wav'));
  await status(page, 'Ready: 3 files.');
  await press(page, 'Transcribe');
  await status(page, 'Done: 3 of 3 files.');
  await press(page, 'Clear list');
  await page.getByRole('table').waitFor({ state: 'hidden' });
  assert.equal(await page.getByRole('button', { name: 'Transcribe' }).isDisabled(), true);
  assert.equal(await focused(page), 'file');
  await choose(page, asFile('alone.wav'));
  await page.getByRole('heading', { name: 'alone.wav' }).waitFor();
  assert.equal(await page.getByRole('table').isVisible(), false);
});

test('the keyboard alone cancels, tries again, opens, and goes back', async () => {
  const script = held();
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  const tabTo = async (name: string) => {
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press('Tab');
      if ((await focused(page)) === name) return;
    }
    assert.fail(`no Tab leads to ${name}`);
  };
  await choose(page, asFile('a.wav'), asFile('b.wav'));
  await tabTo('Cancel a.wav');
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'Try again a.wav');
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'Cancel a.wav');
  for (let chunks = 0; chunks < 4; chunks++) await script.next();
  await status(page, 'Done: 2 of 2 files.');
  assert.equal(await focused(page), 'Open a.wav', 'its button for cancelling has gone');
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'files-back');
  await page.keyboard.press('Enter');
  assert.equal(await focused(page), 'Open a.wav');
});

const LONG = 'A recording of the general assembly, with_a_name_that_is_longer_than_any_column_is_wide.wav';

test('the list fits every width, breaks no word of a state, and axe-core finds nothing wrong with it', async () => {
  const script = held();
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  await page.route('**/v1/audio/transcriptions', (route) =>
    route.request().postData()?.includes('broken.wav')
      ? route.fulfill({ status: 400, json: { error: { message: 'This is no audio', request_id: 'abc' } } })
      : route.continue(),
  );
  const names = ['broken.wav', LONG, 'talk.wav', 'lecture.wav', 'left.wav'];
  await choose(page, ...names.map((name) => asFile(name)));
  await press(page, 'Cancel left.wav');
  await press(page, 'Transcribe');
  await script.next();
  await script.next();
  await row(page, 'talk.wav').getByText('Transcribing').waitFor();
  for (const width of [1440, 1024, 820, 390]) {
    await page.setViewportSize({ width, height: 900 });
    const lines = await page.evaluate<number[]>(
      '[...document.querySelectorAll(".file-state > span")].map((label) => label.getClientRects().length)',
    );
    assert.deepEqual([...new Set(lines)], [1]);
    assert.deepEqual(await tooWide(page), []);
    const display = await page.evaluate('getComputedStyle(document.querySelector("#file-rows tr")).display');
    assert.equal(display, width === 1440 ? 'table-row' : 'grid');
    const text = await page.locator('#file-rows .file-text').first().boundingBox();
    const table = await page.locator('#file-rows').boundingBox();
    assert(text !== null && table !== null && text.width > 0.4 * table.width, 'the text has most room');
  }
  await assertUsable(page, 'a list of files');
});

/* Files of a list are takes as well, and takes can be opened beside a list. */

const recent = (page: Page) => page.getByRole('region', { name: 'Recent' });
const take = (page: Page, name: string) => recent(page).getByRole('button', { name: new RegExp(`^${name}`) });

/** Every file has a text of its own. */
function counting(): Script {
  let said = 0;
  return { transcribe: async () => heard(` Text ${++said}.`) };
}

test('each file of a list is kept as a take, with what was edited, and is there after a reload', async () => {
  await using gateway = await startGateway(counting());
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, asFile('a.wav', toneWav(1)), asFile('b.wav', toneWav(2)));
  await press(page, 'Transcribe');
  await status(page, 'Done: 2 of 2 files.');
  await take(page, 'b.wav').waitFor();
  assert.equal(await recent(page).getByRole('listitem').count(), 2);
  // The take of a file of the list is that file.
  await take(page, 'b.wav').click();
  await page.getByRole('heading', { name: 'b.wav' }).waitFor();
  await recent(page).locator('[aria-current=true]').filter({ hasText: 'b.wav' }).waitFor();
  await page.locator('.word').first().dblclick();
  await page.getByRole('textbox', { name: /^Text at/ }).fill('Edited.');
  await page.keyboard.press('Enter');
  await press(page, 'All files');
  await row(page, 'b.wav').getByText('Edited.').waitFor();
  assert.equal(await take(page, 'b.wav').getAttribute('aria-current'), null);
  await page.reload();
  await take(page, 'b.wav').click();
  await status(page, 'Opened: b.wav.');
  assert.deepEqual(await page.locator('.said').allInnerTexts(), ['Edited.']);
  await page.locator('#time').filter({ hasText: '0:00 / 0:02' }).waitFor();
});

test('a take is opened beside a list, also while it runs, and the list is still there', async () => {
  const script = held();
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  await choose(page, asFile('old.wav', toneWav(1)));
  await press(page, 'Transcribe');
  await script.next();
  await status(page, 'Done: 1 segment.');
  await choose(page, asFile('a.wav', toneWav(1)), asFile('b.wav', toneWav(1)));
  assert.equal(await row(page, 'a.wav').isVisible(), true);
  await press(page, 'Transcribe');
  await script.next();
  await row(page, 'a.wav').getByText('Done').waitFor();
  await take(page, 'old.wav').click();
  await page.getByRole('heading', { name: 'old.wav' }).waitFor();
  assert.deepEqual(await page.locator('.said').allInnerTexts(), ['Text <i>1</i>.']);
  await script.next();
  await status(page, 'Done: 2 of 2 files.');
  await press(page, 'All files');
  assert.equal(await focused(page), 'files-kind');
  assert.match(await row(page, 'a.wav').innerText(), /Text <i>2<\/i>\./);
  assert.match(await row(page, 'b.wav').innerText(), /Text <i>3<\/i>\./);
  assert.deepEqual(await page.locator('.said').allInnerTexts(), []);

  // What is transcribed again there is a take of its own, and no file of the list.
  await take(page, 'old.wav').click();
  await status(page, 'Opened: old.wav.');
  await press(page, 'Transcribe');
  await script.next();
  await status(page, 'Done: 1 segment.');
  await press(page, 'All files');
  assert.equal(await page.getByRole('row').count(), 3);
  assert.match(await row(page, 'a.wav').innerText(), /Text <i>2<\/i>\./);
});
