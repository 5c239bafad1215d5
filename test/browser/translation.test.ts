/** A translation beside a transcript in a real browser: it is kept with the take, and goes into the downloads. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { unzipSync } from 'fflate';
import type { Download, Page } from 'playwright-core';
import { startGateway, toneWav } from '../http/harness.ts';
import { violations } from './axe.ts';
import { browserOfFile, openPage, press, status } from './browser.ts';

const browser = await browserOfFile();

/** Each word takes a second. */
function answerOf(language: string, texts: string[], speakers?: string[]) {
  let sec = 0;
  const segments = texts.map((text, id) => {
    const start = sec;
    sec += text.split(' ').length;
    return { id, start, end: sec, text: ` ${text}`, ...(speakers && { speaker: speakers[id] }) };
  });
  const spoken = speakers && { speakers: speakers.map((speaker) => ({ speaker, seconds: 4 })) };
  const facts = { duration: sec, model: 'multilingual-base', route: 'asked', ...spoken };
  return { text: texts.join(' '), segments, language, ...facts };
}

const GERMAN = answerOf('german', ['Guten | Morgen allen.', 'Wie geht es?'], ['A', 'B']);
const ENGLISH = answerOf('english', ['Good morning', 'all of you.', 'How are you?']);

/** A gateway whose answers are German, and English where a translation is asked for. */
async function openTranslating() {
  const gateway = await startGateway();
  const opened = await openPage(browser, `${gateway.base}/playground`, {}, gateway);
  const { page } = opened;
  const asked: string[] = [];
  await page.route('**/v1/audio/transcriptions', async (route) => {
    const body = route.request().postDataBuffer()?.toString('latin1') ?? '';
    const isTranslation = body.includes('name="translate"');
    asked.push(isTranslation ? 'translation' : 'text');
    await route.fulfill({ json: isTranslation ? ENGLISH : GERMAN });
  });
  return { ...opened, asked };
}

const asFile = (name: string) => ({ name, mimeType: 'audio/wav', buffer: toneWav(7) });
const side = (page: Page) => page.getByRole('button', { name: 'Translation beside it' });
const translated = (page: Page) => page.locator('.translated').allTextContents();
const BESIDE = ['Translation:  Good morning all of you.', 'Translation:  How are you?'];

async function transcribe(page: Page, ...names: string[]) {
  await page.getByLabel('Choose a file').setInputFiles(names.map(asFile));
  await press(page, 'Transcribe');
  await status(page, 'Done');
}

async function translate(page: Page) {
  await side(page).click();
  await status(page, 'Translated.');
}

async function download(page: Page, what: string): Promise<{ name: string; path: string; text: string }> {
  await page.locator('#exports > summary').click();
  const [file]: [Download, unknown] = await Promise.all([
    page.waitForEvent('download'),
    press(page, `Download ${what}`),
  ]);
  const path = await file.path();
  return { name: file.suggestedFilename(), path, text: readFileSync(path, 'utf8') };
}

test('a translation beside the text is in the downloads, and subtitles have it alone', async () => {
  await using opened = await openTranslating();
  const { page } = opened;
  await transcribe(page, 'talk.wav');
  await page.getByLabel('Name of speaker A').fill('Ada');
  assert(!(await download(page, 'md')).text.includes('Good'), 'none is there yet');
  await page.locator('#exports > summary').click();
  assert.equal(await page.locator('#exports [data-translated]:visible').count(), 0);
  await page.keyboard.press('Escape');
  await translate(page);

  assert.equal(
    (await download(page, 'md')).text,
    [
      '# talk\n',
      '|  | Text | Translation |',
      '| --- | --- | --- |',
      '| **Ada** *0:00* | Guten \\| Morgen allen. | Good morning all of you. |',
      '| **B** *0:04* | Wie geht es? | How are you? |',
      '',
    ].join('\n'),
  );
  assert.deepEqual((await download(page, 'csv')).text.split('\r\n'), [
    '\ufeffstart,end,speaker,text,translation',
    '0.000,4.000,Ada,Guten | Morgen allen.,Good morning all of you.',
    '4.000,7.000,B,Wie geht es?,How are you?',
    '',
  ]);
  const { translation, text } = JSON.parse((await download(page, 'json')).text);
  assert.equal(text, 'Guten | Morgen allen. Wie geht es?');
  assert.equal(translation.text, 'Good morning all of you. How are you?');
  assert.equal(translation.language, 'english');
  const docx = await download(page, 'docx');
  const read = `
import sys, zipfile, xml.etree.ElementTree as tree
with zipfile.ZipFile(sys.argv[1]) as parts: body = tree.fromstring(parts.read('word/document.xml'))
word = '{http://schemas.openxmlformats.org/wordprocessingml/2006/main}'
for row in body.iter(word + 'tr'):
    print(' | '.join(''.join(t.text or '' for t in cell.iter(word + 't')) for cell in row.iter(word + 'tc')))`;
  assert.deepEqual(execFileSync('python3', ['-c', read, docx.path], { encoding: 'utf8' }).split('\n'), [
    'Ada 0:00Guten | Morgen allen. | Good morning all of you.',
    'B 0:04Wie geht es? | How are you?',
    '',
  ]);

  assert.match((await download(page, 'srt')).text, /Ada: Guten/, 'the language that is spoken');
  const srt = await download(page, 'translation as srt');
  assert.equal(srt.name, 'talk.en.srt');
  assert.match(srt.text, /^1\n00:00:00,000 --> 00:00:0\d,\d+\nAda: Good morning all of you\.\n/);
  assert.match(srt.text, /\nB: How are you\?\n/);
  assert.match((await download(page, 'translation as vtt')).text, /^WEBVTT\n\n.*\n<v Ada>Good morning/);
  assert.equal(
    (await download(page, 'translation as txt')).text,
    'Ada: Good morning all of you.\nB: How are you?\n',
  );
  await side(page).click();
  assert(!(await download(page, 'md')).text.includes('Good'), 'what is hidden is in no file');
  assert.deepEqual(await violations(page), []);
});

test('a take has its translation when it is opened again, and one without is translated then', async () => {
  await using opened = await openTranslating();
  const { page, asked } = opened;
  await transcribe(page, 'plain.wav');
  await transcribe(page, 'talk.wav');
  await translate(page);
  await page.reload();
  await status(page, 'Opened: talk.wav.');
  assert.deepEqual(await translated(page), BESIDE);
  assert.match((await download(page, 'csv')).text, /How are you\?/);
  assert.equal(await side(page).getAttribute('aria-pressed'), 'true');

  await page.getByRole('button', { name: 'plain.wav' }).first().click();
  await status(page, 'Opened: plain.wav.');
  assert.deepEqual(await translated(page), []);
  await page.reload();
  await status(page, 'Opened: plain.wav.');
  assert.equal(asked.filter((what) => what === 'translation').length, 1);
  // The button is there as soon as it is known which models there are.
  await translate(page);
  assert.deepEqual(await translated(page), BESIDE);
});

test('files of a list are translated one by one, and the zip has their translations', async () => {
  await using opened = await openTranslating();
  const { page } = opened;
  await transcribe(page, 'a.wav', 'b.wav');
  await press(page, 'Open b.wav');
  await translate(page);
  await press(page, 'All files');
  await press(page, 'Open b.wav');
  assert.deepEqual(await translated(page), BESIDE, 'it is asked for once');
  await press(page, 'All files');
  await page.getByLabel('Save as').selectOption('csv');
  const [file] = await Promise.all([page.waitForEvent('download'), press(page, 'Download all')]);
  const entries = unzipSync(readFileSync(await file.path()));
  const text = (name: string) => Buffer.from(entries[name] ?? []).toString();
  assert.match(text('b.csv'), /How are you\?/);
  assert.match(text('a.csv'), /Wie geht es\?/);
  assert.doesNotMatch(text('a.csv'), /translation/);
});
