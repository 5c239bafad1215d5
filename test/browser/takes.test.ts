/** What the playground keeps in the browser, and the ways for sound to come in, run in a real browser. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Gateway, heard, type Script, startGateway, toneWav, until } from '../http/harness.ts';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { wav } from '../wav.ts';
import { browserOfFile, openPage, press, status } from './browser.ts';

const browser = await browserOfFile();

const playground = (gateway: Pick<Gateway, 'base'>, options = {}) =>
  openPage(browser, `${gateway.base}/playground`, options);

const saying = (text: string): Script => ({ transcribe: async () => heard(text) });

test('one click transcribes the sample, which is fetched only then', async () => {
  await using gateway = await startGateway(saying(' Ask not.'));
  await using open = await playground(gateway);
  const { page } = open;
  const fetched: string[] = [];
  page.on('request', (request) => fetched.push(request.url()));
  assert.deepEqual(
    await page.evaluate("performance.getEntriesByType('resource').filter(({name}) => name.endsWith('mp3'))"),
    [],
  );
  await press(page, 'Try a sample');
  await status(page, 'Done');
  assert.equal(fetched.filter((url) => url.endsWith('/assets/sample.mp3')).length, 1);
  assert.equal(await page.locator('.said').first().innerText(), 'Ask not.');
  // The browser plays it, and finds its samples for the waveform.
  await page.locator('#time').filter({ hasText: '0:00 / 0:11' }).waitFor();
  await press(page, 'Play');
  await page.locator('#time').filter({ hasText: '0:01' }).waitFor();
  assert.equal(await page.locator('#player-note').isVisible(), false);
});

test('a gateway that is gone says so instead of the sample', async () => {
  await using gateway = await startGateway();
  await using open = await playground(gateway);
  const { page } = open;
  await page.route('**/sample.mp3', (route) => route.abort());
  await press(page, 'Try a sample');
  await page.getByRole('alert').filter({ hasText: 'cannot be reached for the sample' }).waitFor();
});

test('what starts a transcription is in view on a small screen', async () => {
  await using gateway = await startGateway();
  for (const viewport of [
    { width: 1280, height: 720 },
    { width: 390, height: 844 },
  ]) {
    await using open = await playground(gateway, { viewport });
    const box = await open.page.getByRole('button', { name: 'Transcribe', exact: true }).boundingBox();
    assert(box !== null && box.y + box.height <= viewport.height, JSON.stringify(box));
    const link = await open.page.getByLabel('Link to audio').boundingBox();
    const get = await open.page.locator('#link-get').boundingBox();
    assert(link !== null && get !== null && link.width > 2 * get.width, 'there is room for a link');
  }
});

test('settings are remembered for the next visit', async () => {
  await using gateway = await startGateway();
  await using open = await playground(gateway);
  const { page } = open;
  await page.locator('#model option').nth(1).waitFor({ state: 'attached' });
  await page.locator('#model').selectOption('multilingual-base');
  await page.getByLabel('Language spoken').selectOption('de');
  await page.getByLabel('Tell speakers apart').check();
  await page.getByText('More options').click();
  await page.getByLabel('Prompt', { exact: true }).fill('Ada, Grace');
  await page.reload();
  await page.locator('#model-note').filter({ hasText: 'Installed' }).waitFor();
  assert.equal(await page.locator('#model').inputValue(), 'multilingual-base');
  assert.equal(await page.getByLabel('Language spoken').inputValue(), 'de');
  assert(await page.getByLabel('Tell speakers apart').isChecked());
  assert.equal(await page.getByLabel('Prompt', { exact: true }).inputValue(), 'Ada, Grace');
  assert.match(await page.locator('#code-text').innerText(), /language=de/);
  assert(await page.getByLabel('Prompt', { exact: true }).isVisible(), 'what is set is in view');
});

/* Recent takes */

const recent = (page: Page) => page.getByRole('region', { name: 'Recent' });
const kept = (page: Page) => recent(page).getByRole('listitem');
const said = (page: Page) => page.locator('.said').allInnerTexts();

async function transcribe(page: Page, name: string, sound = toneWav(1)) {
  await page.getByLabel('Choose a file').setInputFiles({ name, mimeType: 'audio/wav', buffer: sound });
  await press(page, 'Transcribe');
  await status(page, 'Done');
}

/** The number of chunks that the engine was asked for is in its text. */
function counting(): Script & { count: number } {
  return {
    count: 0,
    async transcribe() {
      this.count += 1;
      return heard(` Text ${this.count}.`);
    },
  };
}

test('a reload brings the last take back, and older ones are opened without a request', async () => {
  const script = counting();
  await using gateway = await startGateway(script);
  await using open = await playground(gateway);
  const { page } = open;
  await recent(page).getByText('are listed here').waitFor();
  await transcribe(page, 'first.wav');
  await transcribe(page, 'second.wav', toneWav(2));
  await kept(page).nth(1).waitFor();
  await page.reload();
  await status(page, 'Opened: second.wav.');
  assert.deepEqual(await said(page), ['Text 2.']);
  await page.locator('#time').filter({ hasText: '0:00 / 0:02' }).waitFor();
  assert.match(await page.locator('#facts').innerText(), /multilingual-base[\s\S]*2\.0 s of audio/);
  assert.equal(await page.locator('#segments').getAttribute('lang'), 'en');

  const asked: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.getByRole('button', { name: 'first.wav' }).first().click();
  await status(page, 'Opened: first.wav.');
  assert.deepEqual(await said(page), ['Text 1.']);
  await page.locator('#time').filter({ hasText: '0:00 / 0:01' }).waitFor();
  await press(page, 'Play');
  await page.locator('.word.now').first().waitFor();
  assert.deepEqual(
    asked.filter((url) => url.includes('/v1/')),
    [],
  );
  // Its sound is there, to be transcribed once more.
  await press(page, 'Transcribe');
  await status(page, 'Done');
  assert.deepEqual(await said(page), ['Text 3.']);
  assert.equal(script.count, 3);
});

test('a take brings back the settings that it was made with', async () => {
  await using gateway = await startGateway(counting());
  await using open = await playground(gateway);
  const { page } = open;
  await page.locator('#model option').nth(1).waitFor({ state: 'attached' });
  await page.locator('#model').selectOption('multilingual-base');
  await page.getByLabel('Language spoken').selectOption('de');
  await page.getByLabel('Word times').check();
  await page.getByText('More options').click();
  await page.getByLabel('Prompt', { exact: true }).fill('Ada');
  await transcribe(page, 'first.wav');
  await page.getByLabel('Language spoken').selectOption('');
  await page.locator('#model').selectOption('auto');
  await page.getByLabel('Word times').uncheck();
  await page.getByLabel('Prompt', { exact: true }).fill('');
  await transcribe(page, 'second.wav');
  await page.getByRole('button', { name: 'first.wav' }).first().click();
  await status(page, 'Opened: first.wav.');
  assert.equal(await page.locator('#model').inputValue(), 'multilingual-base');
  assert.equal(await page.getByLabel('Language spoken').inputValue(), 'de');
  assert(await page.getByLabel('Word times').isChecked());
  assert.equal(await page.getByLabel('Prompt', { exact: true }).inputValue(), 'Ada');
  assert.match(await page.locator('#code-text').innerText(), /first\.wav[\s\S]*language=de/);
  await page.getByRole('button', { name: 'second.wav' }).first().click();
  await status(page, 'Opened: second.wav.');
  assert.equal(await page.locator('#model').inputValue(), 'auto');
  assert.equal(await page.getByLabel('Language spoken').inputValue(), '');
});

test('takes are forgotten one by one, or all', async () => {
  await using gateway = await startGateway(counting());
  await using open = await playground(gateway);
  const { page } = open;
  for (const name of ['a.wav', 'b.wav', 'c.wav']) await transcribe(page, name);
  await kept(page).nth(2).waitFor();
  await press(page, 'Forget b.wav');
  await until('two are left', async () => (await kept(page).count()) === 2);
  await page.reload();
  await kept(page).nth(1).waitFor();
  assert.match((await kept(page).allInnerTexts()).join(), /c\.wav[\s\S]*a\.wav/);
  await press(page, 'Forget all');
  assert.equal(await kept(page).count(), 2, 'one click is not enough');
  await press(page, 'Really forget all?');
  await recent(page).getByText('are listed here').waitFor();
  await page.reload();
  await recent(page).getByText('are listed here').waitFor();
  await status(page, 'Choose a file');
});

test('nothing is kept where the visitor wants that', async () => {
  await using gateway = await startGateway(counting());
  await using open = await playground(gateway);
  const { page } = open;
  await page.getByLabel('Keep transcripts and settings').uncheck();
  await page.getByLabel('Tell speakers apart').check();
  await page.getByLabel('Tell speakers apart').uncheck();
  await page.getByLabel('Language spoken').selectOption('de');
  await transcribe(page, 'secret.wav');
  await page.reload();
  await recent(page).getByText('are listed here').waitFor();
  assert.equal(await page.getByLabel('Keep transcripts and settings').isChecked(), false);
  assert.equal(await page.getByLabel('Language spoken').inputValue(), '');
  assert.equal(await kept(page).count(), 0);
});

test('the names of speakers stay with the take', async () => {
  await using gateway = await startGateway({ ...saying(' Hello.'), speakers: scriptedVoices() });
  await using open = await playground(gateway);
  const { page } = open;
  await page.getByLabel('Tell speakers apart').check();
  await transcribe(page, 'two.wav', wav(conversation(inTurns(2, 12), 12)));
  await page
    .getByLabel(/^Name of speaker/)
    .first()
    .fill('Ada');
  await transcribe(page, 'other.wav');
  await page.getByRole('button', { name: 'two.wav' }).first().click();
  await status(page, 'Opened: two.wav.');
  assert.match(
    await page
      .getByLabel(/^Name of speaker/)
      .first()
      .inputValue(),
    /^Ada$/,
  );
  assert.match(await page.locator('.who').first().innerText(), /^Ada$/);
});

/** The text of the newest take, as the browser has it on its disk. */
const keptText = (page: Page) =>
  page.evaluate<string>(`(async () => {
    const { createTakes } = await import('/assets/playground/takes.js');
    return (await createTakes().list())[0].answer.text.trim();
  })()`);

test('an edit of the text stays with the take', async () => {
  await using gateway = await startGateway(saying(' Hello word.'));
  await using open = await playground(gateway);
  const { page } = open;
  await transcribe(page, 'one.wav');
  await page.locator('.word').last().dblclick();
  await page.getByRole('textbox', { name: /^Text at/ }).fill('Hello world.');
  await page.keyboard.press('Enter');
  await page.locator('.said').filter({ hasText: 'Hello world.' }).waitFor();
  await until('the edit is kept', async () => (await keptText(page)) === 'Hello world.');
  await page.reload();
  await status(page, 'Opened: one.wav.');
  assert.deepEqual(await said(page), ['Hello world.']);
  assert(await page.locator('#tools').isVisible(), 'and can be edited again');
});

test('a reload while an edit is being saved does not lose it', async () => {
  await using gateway = await startGateway(saying(' Hello word.'));
  await using open = await playground(gateway);
  const { page } = open;
  await transcribe(page, 'one.wav');
  // As on a slow disk: what the page writes waits for work that does not end.
  await page.evaluate(`new Promise((resolve) => {
    indexedDB.open('voxgate').onsuccess = ({ target: { result: database } }) => {
      const takes = database.transaction('takes', 'readwrite').objectStore('takes');
      const again = () => {
        takes.count().onsuccess = again;
        resolve();
      };
      again();
    };
  })`);
  await page.locator('.word').last().dblclick();
  await page.getByRole('textbox', { name: /^Text at/ }).fill('Hello world.');
  await page.keyboard.press('Enter');
  await page.locator('.said').filter({ hasText: 'Hello world.' }).waitFor();
  await page.reload();
  await status(page, 'Opened: one.wav.');
  assert.deepEqual(await said(page), ['Hello world.']);
  assert.equal(await keptText(page), 'Hello world.');
  assert.equal(await page.evaluate("sessionStorage.getItem('voxgate-unsaved')"), null);
});

test('a browser whose store hangs holds nothing up', async () => {
  await using gateway = await startGateway(saying(' Hello.'));
  await using open = await playground(gateway);
  const { page } = open;
  await page.addInitScript('IDBFactory.prototype.open = () => ({})');
  await page.reload();
  await transcribe(page, 'one.wav');
  assert.deepEqual(await said(page), ['Hello.']);
});

test('the oldest takes go first, and a browser without room says so', async () => {
  await using gateway = await startGateway(counting());
  await using open = await playground(gateway);
  const { page } = open;
  const takes = `(async () => {
    const { createTakes } = await import('/assets/playground/takes.js');
    const takes = createTakes();
    const answer = { text: 'x', duration: 1, segments: [] };
    const add = (name, bytes) => takes.add({ name, answer }, new File([new Uint8Array(bytes)], name));
    const names = async () => (await takes.list()).map(({ name }) => name);
    const hasSound = async (id) => (await takes.get(id)).sound !== null;`;
  const numbered = await page.evaluate<string[]>(`${takes}
    for (let i = 0; i < 22; i++) await add(String(i), 10);
    return names();
  })()`);
  assert.deepEqual(
    numbered,
    Array.from({ length: 20 }, (_, i) => String(21 - i)),
  );
  const large = await page.evaluate<unknown[]>(`${takes}
    await takes.clear();
    for (const name of 'abcde') await add(name, 45_000_000);
    const id = await add('too long', 50_000_001);
    return [await names(), await hasSound(id)];
  })()`);
  assert.deepEqual(large, [['too long', 'e', 'd', 'c', 'b'], false]);

  const full = (times: number) => `
    const { add: really } = IDBObjectStore.prototype;
    let left = ${times};
    IDBObjectStore.prototype.add = function (...of) {
      if (left-- > 0) throw new DOMException('full', 'QuotaExceededError');
      return really.apply(this, of);
    };`;
  const whenFull = (times: number) => `${takes}
    await takes.clear();
    await add('old', 10);
    ${full(times)}
    const id = await add('new', 10);
    IDBObjectStore.prototype.add = really;
    return [await names(), await hasSound(id)];
  })()`;
  assert.deepEqual(await page.evaluate(whenFull(1)), [['new'], true]);
  assert.deepEqual(await page.evaluate(whenFull(2)), [['new'], false]);
  await page.evaluate(`{ ${full(100)} }`);
  await transcribe(page, 'one more.wav');
  await recent(page).getByText('one more.wav is not kept. This browser has no room to keep it.').waitFor();
  assert.deepEqual(await said(page), ['Text 1.'], 'the text is on the page all the same');
});

/* Models that are not on disk */

test('a model that is downloaded first shows its size, and how far it is', async () => {
  const model = 'multilingual-tiny';
  let doneBytes = 12_000_000;
  let isThere = false;
  const progress = () => ({
    id: model,
    phase: 'downloading' as const,
    what: 'a file',
    doneBytes,
    totalBytes: 82_000_000,
  });
  const downloads = { now: 0 };
  await using gateway = await startGateway({
    ...saying(' Here at last.'),
    activity: () => (downloads.now > 0 && !isThere ? [progress()] : []),
    async ensure(id, { onProgress }) {
      if (id !== model || isThere) return;
      downloads.now += 1;
      onProgress?.(progress());
      await until('it is there', () => isThere, 30_000);
    },
  });
  await using open = await playground(gateway);
  const { page } = open;
  const option = page.locator('#model option').filter({ hasText: `${model} (to be downloaded, ` });
  await option.waitFor({ state: 'attached' });
  assert.match(await option.innerText(), /\d\.\d MB\)$/);
  await page.locator('#model').selectOption(model);
  await page.getByLabel('Choose a file').setInputFiles({
    name: 'a.wav',
    mimeType: 'audio/wav',
    buffer: toneWav(1),
  });
  await press(page, 'Transcribe');
  await status(page, `Downloading ${model}.`);
  await page.getByText('12.0 MB of 82.0 MB').waitFor();
  const bar = page.getByRole('progressbar', { name: 'Transcribed so far' });
  const value = async () => Number(await bar.getAttribute('value'));
  assert((await value()) > 0.14 && (await value()) < 0.15, `${await value()}`);
  doneBytes = 41_000_000;
  await page.getByText('41.0 MB of 82.0 MB').waitFor();
  assert.equal(await value(), 0.5);
  isThere = true;
  await status(page, 'Done');
  assert.deepEqual(await said(page), ['Here at last.']);
});

/* Sounds that are pasted, and links */

/** Pastes as the browser does where it is told to by hand: programs cannot put files into a clipboard. */
const paste = (page: Page, items: string, target = 'document.body') =>
  page.evaluate(`{
    const clipboardData = new DataTransfer();
    ${items}
    ${target}.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
  }`);

test('a file is pasted anywhere in the tab, and a picture or a text is left alone', async () => {
  await using gateway = await startGateway(saying(' Pasted.'));
  await using open = await playground(gateway);
  const { page } = open;
  const sound = `clipboardData.items.add(new File([Uint8Array.from(atob('${toneWav(1).toString('base64')}'), (c) => c.charCodeAt(0))], 'copied.wav', { type: 'audio/wav' }));`;
  await paste(page, "clipboardData.items.add(new File(['x'], 'picture.png', { type: 'image/png' }));");
  await paste(page, "clipboardData.setData('text/plain', 'words');");
  await page.getByRole('tab', { name: 'Live' }).click();
  await paste(page, sound);
  await page.getByRole('tab', { name: 'Transcription' }).click();
  await status(page, 'Choose a file');
  await paste(page, sound);
  await status(page, 'Ready: copied.wav.');
  await press(page, 'Transcribe');
  await status(page, 'Done');
  assert.deepEqual(await said(page), ['Pasted.']);
});

/** A page of which other hosts may be asked, and what they answer. */
async function withHosts(gateway: Pick<Gateway, 'base'>): Promise<AsyncDisposable & { page: Page }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.route('https://*.example/**', async (route) => {
    const { host, pathname } = new URL(route.request().url());
    const headers = { 'access-control-allow-origin': '*' };
    if (host === 'closed.example') return route.abort(); // as without CORS
    if (host === 'page.example') return route.fulfill({ headers, body: '<p>', contentType: 'text/html' });
    if (pathname === '/slow.wav') return; // for ever
    if (pathname !== '/talk%20one.wav') return route.fulfill({ status: 404, headers });
    return route.fulfill({ headers, body: toneWav(1), contentType: 'audio/wav' });
  });
  await page.goto(`${gateway.base}/playground`);
  return { page, [Symbol.asyncDispose]: () => context.close() };
}

test('a link is fetched by the browser, pasted anywhere or into its field', async () => {
  await using gateway = await startGateway(saying(' From afar.'));
  await using open = await withHosts(gateway);
  const { page } = open;
  await paste(page, "clipboardData.setData('text/plain', 'https://open.example/talk%20one.wav');");
  await status(page, 'Ready: talk one.wav.');
  await press(page, 'Transcribe');
  await status(page, 'Done');
  assert.deepEqual(await said(page), ['From afar.']);

  const link = page.getByLabel('Link to audio');
  const alert = (text: string) => page.getByRole('alert').filter({ hasText: text }).waitFor();
  const ask = async (url: string) => {
    await link.fill(url);
    await link.press('Enter');
  };
  await ask('https://closed.example/a.wav');
  await alert('closed.example cannot be reached, or does not let other sites fetch this.');
  await ask('https://open.example/none.wav');
  await alert('open.example answered 404.');
  await ask('https://page.example/');
  await alert('leads to a web page');
  await ask('http://open.example/a.wav');
  await alert('Only https:// links can be fetched');
  await ask('talk.wav');
  await alert('That is not a link.');
  assert.deepEqual(await said(page), ['From afar.'], 'the text stays');

  await link.fill('https://open.example/slow.wav');
  await press(page, 'Get');
  await page.getByText('Fetching the link.').waitFor();
  await page.locator('#link-get').filter({ hasText: 'Cancel' }).click();
  await page.locator('#link-get').filter({ hasText: 'Get' }).waitFor();
});

test('a link to more than can be taken is given up', async () => {
  await using gateway = await startGateway();
  await using open = await withHosts(gateway);
  const { page } = open;
  await page.evaluate(`globalThis.fetch = async () => new Response(new ReadableStream({
    pull(controller) { controller.enqueue(new Uint8Array(100_000_000)); },
  }), { headers: { 'Content-Type': 'audio/wav' } })`);
  await page.getByLabel('Link to audio').fill('https://open.example/huge.wav');
  await press(page, 'Get');
  await page.getByRole('alert').filter({ hasText: 'larger than 500 MB' }).waitFor();
});

test('only the playground may ask other hosts', async () => {
  await using gateway = await startGateway();
  const policy = async (path: string) =>
    (await fetch(gateway.base + path)).headers.get('content-security-policy') ?? '';
  assert.match(await policy('/playground'), /; connect-src 'self' https:$/);
  for (const path of ['/docs', '/assets/playground.js', '/admin'])
    assert(!(await policy(path)).includes('https:'), path);
});
