/** The transcript in a real browser: what is taken away, the keyboard, edits, search, and very long texts. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Download, Page } from 'playwright-core';
import { type Gateway, heard, type Script, startGateway, toneWav, until } from '../http/harness.ts';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { wav } from '../wav.ts';
import { assertUsable } from './axe.ts';
import { browserOfFile, openPage, press, status } from './browser.ts';

const browser = await browserOfFile();

const playground = (gateway: Pick<Gateway, 'base'>, options = {}) =>
  openPage(browser, `${gateway.base}/playground`, options);

async function transcribe(page: Page, buffer: Buffer, name = 'talk.wav') {
  await page.getByLabel('Choose a file').setInputFiles({ name, mimeType: 'audio/wav', buffer });
  await press(page, 'Transcribe');
  await status(page, 'Done');
}

async function download(page: Page, kind: string): Promise<{ name: string; path: string; text: string }> {
  await page.locator('#exports > summary').click();
  const [file]: [Download, unknown] = await Promise.all([
    page.waitForEvent('download'),
    press(page, `Download ${kind}`),
  ]);
  const path = await file.path();
  return { name: file.suggestedFilename(), path, text: readFileSync(path, 'utf8') };
}

/** Two speakers take turns of 4 s, and every half second has a word. */
const conversing = (): Script => ({
  speakers: scriptedVoices(),
  transcribe: async () =>
    heard(Array.from({ length: 24 }, (_, i) => ` w${i}${i === 23 ? '.' : ''}`).join(''), 500),
});
const twoSpeakers = wav(conversation(inTurns(2, 12), 12));

test('every format has the names of the speakers and all of the text', async () => {
  await using gateway = await startGateway(conversing());
  await using open = await playground(gateway);
  const { page } = open;
  await page.getByLabel('Tell speakers apart').check();
  await transcribe(page, twoSpeakers, 'a & b.wav');
  await page.getByLabel('Name of speaker B').fill('Zoë, <Co>');
  assert.match(
    (await download(page, 'md')).text,
    /^# a & b\n\n\*\*A\*\* \*0:00\*\n\nw0 [\s\S]*\*\*Zoë, \\<Co\\>\*\* \*0:0\d\*\n\nw8 /,
  );
  const csv = (await download(page, 'csv')).text.split('\r\n');
  assert.equal(csv[0], '\ufeffstart,end,speaker,language,text');
  assert.match(csv[2] ?? '', /^\d\.\d{3},\d\.\d{3},"Zoë, <Co>",english,w8 w9 /);
  const docx = await download(page, 'docx');
  assert.equal(docx.name, 'a & b.docx');
  // Each part is well-formed, and the text of the document is what the page shows.
  const read = `
import sys, zipfile, xml.etree.ElementTree as tree
with zipfile.ZipFile(sys.argv[1]) as parts:
    assert parts.testzip() is None
    for name in parts.namelist(): tree.fromstring(parts.read(name))
    body = tree.fromstring(parts.read('word/document.xml'))
    word = '{http://schemas.openxmlformats.org/wordprocessingml/2006/main}'
    for p in body.iter(word + 'p'): print(''.join(t.text or '' for t in p.iter(word + 't')))`;
  const lines = execFileSync('python3', ['-c', read, docx.path], { encoding: 'utf8' }).split('\n');
  assert.equal(lines[0], 'a & b');
  assert.match(lines[3] ?? '', /^Zoë, <Co> 0:0\d$/);
  assert.match(lines[4] ?? '', /^w8 w9 /);
});

test('the menu of downloads works from the keyboard, and goes away', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' One.') });
  await using open = await playground(gateway);
  const { page } = open;
  await transcribe(page, toneWav(1));
  const summary = page.locator('#exports > summary');
  const items = page.locator('#exports .menu-items');
  await summary.focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  assert.equal(await page.evaluate('document.activeElement.dataset.download'), 'md');
  await page.keyboard.press('Escape');
  await items.waitFor({ state: 'hidden' });
  assert.equal(await page.evaluate('document.activeElement.localName'), 'summary');
  await page.keyboard.press('Enter');
  await items.waitFor();
  await page.getByRole('heading', { name: 'Transcript' }).click();
  await items.waitFor({ state: 'hidden' });
});

const evaluate = <T>(page: Page, code: string) => page.evaluate<T>(code);
const focusedWord = (page: Page) => evaluate<string>(page, 'document.activeElement.textContent');
const said = (page: Page) => page.locator('.said').allInnerTexts();
/** The position of the player, in seconds. */
const playedSec = async (page: Page) => Number(await page.getByRole('slider').getAttribute('aria-valuenow'));

const TEXT = ' One two three. Four five six. Seven one.';
const speaking = (): Script => ({ transcribe: async () => heard(TEXT, 500) });

test('words are one tab stop, arrows move among them, and Enter plays from one', async () => {
  await using gateway = await startGateway(speaking());
  await using open = await playground(gateway);
  const { page } = open;
  await transcribe(page, toneWav(5));
  assert.deepEqual(await said(page), ['One two three.', 'Four five six.', 'Seven one.']);
  assert.equal(await page.locator('#transcript [role=log], #transcript[role=log]').count(), 0);
  await page.getByRole('button', { name: 'Find and replace' }).focus();
  await page.keyboard.press('Tab');
  assert.equal(await focusedWord(page), 'One');
  const moves: [key: string, word: string][] = [
    ['ArrowRight', 'two'],
    ['ArrowRight', 'three.'],
    ['ArrowRight', 'Four'],
    ['ArrowLeft', 'three.'],
    ['ArrowDown', 'Four'],
    ['End', 'six.'],
    ['ArrowUp', 'One'],
    ['ArrowUp', 'One'],
    ['Control+End', 'one.'],
    ['ArrowRight', 'one.'],
    ['Control+Home', 'One'],
    ['ArrowDown', 'Four'],
  ];
  for (const [key, word] of moves) {
    await page.keyboard.press(key);
    assert.equal(await focusedWord(page), word, key);
  }
  assert.equal(await page.locator('.word[tabindex], .word[role]').count(), 1);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  assert((await playedSec(page)) >= 1.4);
  await page.keyboard.press('Space');
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await focusedWord(page), 'Measure word times');
});

test('Space on the waveform plays and stops, and arrows seek', async () => {
  await using gateway = await startGateway(speaking());
  await using open = await playground(gateway);
  const { page } = open;
  await transcribe(page, toneWav(20));
  await page.getByRole('slider').focus();
  await page.keyboard.press('Space');
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.keyboard.press('Space');
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
  const before = await playedSec(page);
  await page.keyboard.press('ArrowRight');
  assert(Math.abs((await playedSec(page)) - before - 5) < 0.2);
});

test('a segment is edited in its place, and the edit is in the text, in every download, and can be undone', async () => {
  await using gateway = await startGateway(speaking());
  await using open = await playground(gateway);
  const { page } = open;
  await page.getByLabel('Word times').check();
  await transcribe(page, toneWav(5));
  const before = JSON.parse((await download(page, 'json')).text);
  await page.locator('.word').first().focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('F2');
  const editor = page.getByRole('textbox', { name: 'Text at 0:01' });
  await editor.fill('Four fine words, six.');
  await page.keyboard.press('Escape');
  assert.equal((await said(page))[1], 'Four five six.');
  assert.equal(await focusedWord(page), 'Four');
  await page.keyboard.press('F2');
  await editor.fill('Four fine words, six.');
  await page.keyboard.press('Enter');
  assert.deepEqual(await said(page), ['One two three.', 'Four fine words, six.', 'Seven one.']);
  assert.equal(await focusedWord(page), 'Four');

  const json = JSON.parse((await download(page, 'json')).text);
  assert.equal(json.text, 'One two three. Four fine words, six. Seven one.');
  assert.deepEqual(
    json.segments.map(({ edited }: { edited?: boolean }) => edited ?? false),
    [false, true, false],
  );
  const timesOf = (answer: typeof json) =>
    answer.words
      .filter(({ word }: { word: string }) => !/^(five|fine|words,)$/.test(word))
      .map(({ word, start, end }: { word: string; start: number; end: number }) => [word, start, end]);
  assert.deepEqual(timesOf(json), timesOf(before), 'the words that stayed keep their times');
  for (const kind of ['txt', 'md', 'srt', 'vtt', 'csv'])
    assert.match((await download(page, kind)).text, /Four fine words, six\./, kind);
  await press(page, 'Copy text');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.match(await evaluate(page, 'navigator.clipboard.readText()'), /Four fine words, six\./);

  await page.getByRole('button', { name: 'Edited at 0:01: restore the original' }).click();
  assert.equal((await said(page))[1], 'Four five six.');
  assert.equal(await page.locator('.edited').count(), 0);
  await press(page, 'Undo');
  assert.equal((await said(page))[1], 'Four fine words, six.');
  await press(page, 'Undo');
  assert.equal((await said(page))[1], 'Four five six.');
  assert.equal(await page.getByRole('button', { name: 'Undo', exact: true }).isVisible(), false);
  assert.equal(await focusedWord(page), 'Four');
  await page.getByText('Seven').dblclick();
  await page.getByRole('textbox', { name: /^Text at/ }).fill('');
  await page.getByRole('heading', { name: 'Transcript' }).click();
  assert.deepEqual(await said(page), ['One two three.', 'Four five six.', '']);
});

test('text is found with its count, and replaced once or everywhere', async () => {
  await using gateway = await startGateway(speaking());
  await using open = await playground(gateway);
  const { page } = open;
  await transcribe(page, toneWav(5));
  await press(page, 'Find and replace');
  await page.keyboard.type('one');
  const count = page.locator('#find-count');
  assert.equal(await count.innerText(), '1 of 2');
  assert.equal(await evaluate(page, "CSS.highlights.get('found').size"), 2);
  const now = "[...CSS.highlights.get('found-now')].join()";
  assert.equal(await evaluate(page, now), 'One');
  await page.keyboard.press('Enter');
  assert.equal(await count.innerText(), '2 of 2');
  assert.equal(await evaluate(page, now), 'one');
  await press(page, 'Next');
  assert.equal(await count.innerText(), '1 of 2');
  await press(page, 'Previous');
  assert.equal(await count.innerText(), '2 of 2');
  await page.getByLabel('Find', { exact: true }).fill('e. f');
  assert.equal(await count.innerText(), 'Not found');
  await page.getByLabel('Find', { exact: true }).fill('One tw');
  assert.equal(await evaluate(page, now), 'One tw');
  await page.getByLabel('Find', { exact: true }).fill('one');
  await page.getByLabel('Replace with').fill('$& one');
  await press(page, 'Replace');
  assert.deepEqual(await said(page), ['$& one two three.', 'Four five six.', 'Seven one.']);
  assert.equal(await count.innerText(), '2 of 2', 'the next hit is not in what was put there');
  await press(page, 'Undo');
  await page.getByLabel('Replace with').fill('1');
  await press(page, 'Replace all');
  assert.deepEqual(await said(page), ['1 two three.', 'Four five six.', 'Seven 1.']);
  await status(page, 'Replaced 2 matches.');
  await press(page, 'Undo');
  assert.deepEqual(await said(page), ['One two three.', 'Four five six.', 'Seven one.']);
  await page.getByLabel('Find', { exact: true }).press('Escape');
  assert.equal(await page.locator('#find').isVisible(), false);
  assert.equal(await evaluate(page, "CSS.highlights.has('found')"), false);
});

/** An answer in one piece, with a segment for each text. Each word takes a second. */
function answerOf(list: { text: string; language?: string; speaker?: string }[]) {
  let sec = 0;
  const segments = list.map(({ text, language = 'english', speaker }, id) => {
    const start = sec;
    sec += text.split(' ').length;
    const of = {
      language,
      language_code: language === 'german' ? 'de' : 'en',
      ...(speaker !== undefined && { speaker }),
    };
    return { id, start, end: sec, text: ` ${text}`, ...of };
  });
  const text = segments.map((segment) => segment.text).join('');
  const speakers = [...new Set(list.map(({ speaker }) => speaker))].filter((one) => one !== undefined);
  return {
    text: text.trim(),
    segments,
    language: 'english',
    duration: sec,
    model: 'multilingual-base',
    route: 'asked',
    ...(speakers.length > 0 && { speakers: speakers.map((speaker) => ({ speaker, seconds: sec })) }),
  };
}

test('segments of one speaker are one paragraph, and languages are named where a text has several', async () => {
  await using gateway = await startGateway(speaking());
  await using open = await playground(gateway);
  const { page } = open;
  const talk = [
    { speaker: 'A', text: 'Good morning.' },
    { speaker: 'A', text: 'How are you?' },
    { speaker: 'B', text: 'Danke, sehr gut.', language: 'german' },
    { speaker: 'B', text: 'Und dir?', language: 'german' },
    { speaker: 'A', text: 'Fine.' },
  ];
  await page.route('**/v1/audio/transcriptions', (route) => route.fulfill({ json: answerOf(talk) }));
  await transcribe(page, toneWav(5));
  assert.deepEqual(await page.locator('.segment .text').allInnerTexts(), [
    'English Good morning. How are you?',
    'German Danke, sehr gut. Und dir?',
    'English Fine.',
  ]);
  assert.deepEqual(await page.locator('.segment .who').allInnerTexts(), ['A', 'B', 'A']);
  assert.equal(await page.locator('.said').nth(2).getAttribute('lang'), 'de');
  await page.unroute('**/v1/audio/transcriptions');
  const alone = answerOf(talk.filter(({ speaker }) => speaker === 'A'));
  await page.route('**/v1/audio/transcriptions', (route) => route.fulfill({ json: alone }));
  await press(page, 'Transcribe');
  await page.locator('.segment').nth(1).waitFor({ state: 'detached' });
  assert.equal(await page.locator('.badge.language').count(), 0);
});

test('a text of three hours is shown, followed, searched and edited without a wait', async (t) => {
  await using gateway = await startGateway(speaking());
  await using open = await playground(gateway);
  const { page } = open;
  const words = 'so we went there and then he said that nobody had ever seen it'.split(' ');
  const talk = Array.from({ length: 800 }, (_, i) => ({
    speaker: 'AB'[Math.floor(i / 5) % 2] ?? 'A',
    text: `${words.join(' ')} number ${i}.`,
  }));
  await page.route('**/v1/audio/transcriptions', (route) => route.fulfill({ json: answerOf(talk) }));
  const timed = (what: string) =>
    evaluate<number>(
      page,
      `new Promise((resolve) => {
        const began = performance.now();
        ${what};
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
      })`,
    );
  await evaluate(
    page,
    `void new PerformanceObserver((list) => {
      globalThis.blockedMs = Math.max(globalThis.blockedMs ?? 0, ...list.getEntries().map((one) => one.duration));
    }).observe({ type: 'longtask' })`,
  );
  await transcribe(page, toneWav(1));
  assert.equal(await page.locator('.word').count(), 800 * 16);
  const blocked = await evaluate<number>(page, 'globalThis.blockedMs ?? 0');
  const scroll = await timed("document.querySelector('#transcript').scrollTop = 1e6");
  await press(page, 'Find and replace');
  const search = await timed(
    "document.querySelector('#find-query').value = 'e'; document.querySelector('#find-query').dispatchEvent(new Event('input'))",
  );
  assert.match(await page.locator('#find-count').innerText(), /^1 of \d{4}/);
  await page.getByLabel('Find', { exact: true }).fill('number 799');
  await until('it is in view', () =>
    evaluate<boolean>(
      page,
      `(() => {
        const [range] = CSS.highlights.get('found-now');
        const at = range.getBoundingClientRect();
        const box = document.querySelector('#transcript').getBoundingClientRect();
        return at.height > 0 && at.top >= box.top && at.bottom <= box.bottom;
      })()`,
    ),
  );
  await page.getByLabel('Find', { exact: true }).fill('nobody');
  await page.getByLabel('Replace with').fill('no one');
  const replace = await timed("document.querySelector('#replace-all').click()");
  assert.equal(await page.locator('.edited').count(), 800);
  const undo = await timed("document.querySelector('#undo').click()");
  const seek = await timed("document.querySelectorAll('.word')[12000].click()");
  assert.equal(await page.locator('.word.now').count(), 1);
  const took = { blocked, scroll, search, replace, undo, seek };
  t.diagnostic(JSON.stringify(took));
  // They take less than a twentieth of this on a machine with nothing else to do.
  for (const [name, ms] of Object.entries(took)) assert(ms < 5000, `${name} took ${ms} ms`);
});

test('a translation stands beside the text that it translates, and goes with it', async () => {
  await using gateway = await startGateway(speaking());
  await using open = await playground(gateway);
  const { page } = open;
  const asked: string[] = [];
  const german = answerOf([
    { text: 'Guten Morgen zusammen.', language: 'german' },
    { text: 'Wie geht es euch?', language: 'german' },
  ]);
  const english = answerOf([{ text: 'Good morning all.' }, { text: 'How are' }, { text: 'you?' }]);
  await page.route('**/v1/audio/transcriptions', async (route) => {
    const body = route.request().postDataBuffer()?.toString('latin1') ?? '';
    const isTranslation = body.includes('name="translate"');
    asked.push(isTranslation ? 'translation' : 'text');
    await route.fulfill({ json: isTranslation ? english : { ...german, language: 'german' } });
  });
  await transcribe(page, toneWav(8));
  const button = page.getByRole('button', { name: 'Translation beside it' });
  await button.click();
  await status(page, 'Translated.');
  assert.deepEqual(await page.locator('.segment').allTextContents(), [
    '0:00Guten Morgen zusammen.Translation:  Good morning all.',
    '0:03Wie geht es euch?Translation:  How are you?',
  ]);
  const [left, right] = await Promise.all(
    ['.text', '.translated'].map((name) => page.locator(name).first().boundingBox()),
  );
  assert(left && right && right.x >= left.x + left.width && Math.abs(right.y - left.y) < 2);
  await page.setViewportSize({ width: 390, height: 800 });
  const below = await page.locator('.translated').first().boundingBox();
  const above = await page.locator('.text').first().boundingBox();
  assert(below && above && below.y >= above.y + above.height, 'stacked on a phone');
  await button.click();
  assert.equal(await page.locator('.translated').first().isVisible(), false);
  await button.click();
  assert.equal(await page.locator('.translated').first().isVisible(), true);
  assert.deepEqual(asked, ['text', 'translation'], 'it is asked for once');
  await press(page, 'Transcribe');
  await page.locator('.translated').first().waitFor({ state: 'detached' });
  await page.getByText('More options').click();
  await page.getByLabel('Translate to English').check();
  await press(page, 'Transcribe');
  await status(page, 'Done: 3 segments.');
  assert.equal(await button.isVisible(), false, 'an English text needs none');
});

test('axe-core finds no violation in any state of a transcript', async () => {
  await using gateway = await startGateway(speaking());
  await using open = await playground(gateway, { reducedMotion: 'reduce' });
  const { page } = open;
  const talk = answerOf([
    { speaker: 'A', text: 'Good morning to you all.' },
    { speaker: 'B', text: 'Danke, sehr gut, und wie geht es dir heute?', language: 'german' },
  ]);
  await page.route('**/v1/audio/transcriptions', (route) => route.fulfill({ json: talk }));
  await transcribe(page, toneWav(15));
  await press(page, 'Translation beside it');
  await status(page, 'Translated.');
  await page.getByText('morning', { exact: true }).click();
  await page.keyboard.press('F2');
  await assertUsable(page, 'while it is edited');
  await page.getByRole('textbox', { name: /^Text at/ }).fill('Good evening to you all.');
  await page.keyboard.press('Enter');
  await press(page, 'Find and replace');
  await page.keyboard.type('o');
  await page.locator('#exports > summary').click();
  await assertUsable(page, 'while it is searched');
});
