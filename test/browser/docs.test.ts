/**
 * The page of the API in a real browser. test/deep/api-page.test.ts executes every operation there, and
 * test/http/openapi.test.ts asks as the examples do.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { head, startHostileUpstream } from '../faults/hostile-upstream.ts';
import { type Gateway, startGateway, toneWav, until } from '../http/harness.ts';
import { execute, shown, toggle } from './api-page.ts';
import { assertUsable, violations } from './axe.ts';
import { browserOfFile, openPage, tooWide } from './browser.ts';

const browser = await browserOfFile();

test('a form sends what was chosen and nothing else, and a list as several fields', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/docs`);
  const [transcription] = await shown(open.page);
  assert(transcription);
  const { block } = transcription;
  await toggle(block);
  await block.getByRole('combobox', { name: 'response_format' }).selectOption('verbose_json');
  await block.getByRole('listbox', { name: 'timestamp_granularities' }).selectOption(['word', 'segment']);
  assert.equal(await execute(block), '200');
  const command = await block.locator('.curl-command .microlight').innerText();
  assert.deepEqual([...command.matchAll(/-F '([^;']+)/g)].map(([, field]) => field).sort(), [
    'file=@clip.wav',
    'model=auto',
    'response_format=verbose_json',
    'timestamp_granularities=segment',
    'timestamp_granularities=word',
  ]);
  const { words, segments } = JSON.parse(
    await block.locator('.live-responses-table pre').first().innerText(),
  );
  assert(words.length > 0 && segments.length > 0);
});

test('the page says that it is loading, and what to do where that fails', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/health`);
  const { page } = open;
  let fail = () => {};
  const failed = new Promise<void>((resolve) => {
    fail = resolve;
  });
  await page.route('**/openapi.json', (route) => failed.then(() => route.abort()));
  await page.goto(`${gateway.base}/docs`);
  await page.getByText('Loading the operations…').waitFor();
  fail();
  await page.getByText('The operations could not be loaded. Reload the page').waitFor();
  assert.equal(await page.getByText('Loading the operations…').count(), 0);
  await page.unroute('**/openapi.json');
  await page.reload();
  await page.getByRole('button', { name: 'POST /v1/audio/transcriptions' }).first().waitFor();
  assert.equal(await page.getByText('Loading the operations…').count(), 0);
});

test('an answer of speech can be played, and nothing is asked for twice', async () => {
  await using upstream = await startHostileUpstream();
  const sound = toneWav(1);
  const type = { 'Content-Type': 'audio/wav', 'Content-Length': String(sound.length) };
  upstream.behave((socket) => socket.end(Buffer.concat([Buffer.from(head('200 OK', type)), sound])));
  await using gateway = await startGateway({ env: { SVC_TTS_UPSTREAM_URL: upstream.url } });
  await using open = await openPage(browser, `${gateway.base}/docs`);
  const speech = (await shown(open.page)).find(({ name }) => name === 'post /v1/audio/speech');
  assert(speech);
  await toggle(speech.block);
  assert.equal(await execute(speech.block), '200');
  const isLoaded = `document.querySelector('.live-responses-table audio').duration > 0.9`;
  await until('it is loaded', () => open.page.evaluate<boolean>(isLoaded));
  const asked = upstream.heads
    .map((lines) => lines.split(' HTTP', 1)[0])
    .filter((one) => /audio/.test(String(one)));
  assert.deepEqual(asked, ['POST /v1/audio/speech']);
});

test('the page of the API leads back to the other pages, and its address to an operation', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/docs#/chat/createChatCompletion`);
  const { page } = open;
  await page.locator('.opblock.is-open [data-path="/v1/chat/completions"]').waitFor();
  for (const [name, path] of [
    ['Playground', 'playground'],
    ['Dashboard', 'admin'],
  ] as const)
    assert.equal(await page.getByRole('link', { name, exact: true }).getAttribute('href'), path);
});

const OPERATION = 'speech to text in the language spoken';

/** The page on a phone, which has the list of operations until `letOn` is called. */
async function openList({ base }: Gateway) {
  const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };
  const open = await openPage(browser, `${base}/docs`, phone);
  const { page } = open;
  let letOn = () => {};
  const held = new Promise<void>((resolve) => {
    letOn = resolve;
  });
  await page.route('**/swagger-ui-bundle.js', (route) => held.then(() => route.continue()));
  await page.reload();
  const links = page.locator('#list a');
  await links.first().waitFor();
  return Object.assign(open, { links, letOn });
}

test('on a phone the operations are listed at once, and Swagger UI takes their place by itself', async () => {
  await using gateway = await startGateway();
  await using open = await openList(gateway);
  const { page, links, letOn } = open;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violations(page), [], colorScheme);
  }
  assert.deepEqual(await tooWide(page), []);
  const words = await links.allInnerTexts();
  letOn();
  const operations = await shown(page);
  assert.equal(await links.count(), 0, 'nothing stands twice');
  const first = words.map((text) => text.split('\n').slice(0, 2).join(' '));
  assert.deepEqual(
    first,
    operations.map(({ name }) => name.replace(/^\w+/, (method) => method.toUpperCase())),
  );
});

test('a tap on a listed operation opens it', async () => {
  await using gateway = await startGateway();
  await using open = await openList(gateway);
  await open.links.filter({ hasText: OPERATION }).tap();
  open.letOn();
  await open.page.locator('.opblock.is-open [data-path="/v1/audio/transcriptions"]').waitFor();
});

test('what has the focus, and what was scrolled to, stays so when Swagger UI comes', async () => {
  await using gateway = await startGateway();
  await using open = await openList(gateway);
  const { page, links, letOn } = open;
  await links.filter({ hasText: OPERATION }).focus();
  const before = await page.evaluate<number>(`(() => {
    scrollTo(0, 1500);
    return [...document.querySelectorAll('#list a')].map((link) => link.getBoundingClientRect().top).find((top) => top >= 0);
  })()`);
  letOn();
  await shown(page);
  const focused = `document.activeElement.closest('.opblock')?.id`;
  assert.equal(await page.evaluate(focused), 'operations-speech_to_text-createTranscription');
  const tops = await page.evaluate<number[]>(
    `[...document.querySelectorAll('.opblock-summary-control')].map((one) => one.getBoundingClientRect().top)`,
  );
  const nearest = Math.min(...tops.map((top) => Math.abs(top - before)));
  assert(nearest < 1, `the nearest operation is ${nearest} px from where one was`);
});

test('axe-core finds no violation on the page of the API, and it does not scroll sideways', async () => {
  await using gateway = await startGateway();
  await using open = await openPage(browser, `${gateway.base}/docs`);
  const { page } = open;
  const operations = await shown(page);
  for (const { name, block } of operations)
    if (/transcriptions|completions|\/asr|captures\/\{requestId\}$/.test(name)) await toggle(block);
  assert(operations[0]);
  assert.equal(await execute(operations[0].block), '200');
  await assertUsable(page, 'the page of the API');
});
