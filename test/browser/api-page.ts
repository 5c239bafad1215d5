/** What the tests of the page of the API do with it, in `test/browser/` and in `test/deep/`. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { form, type Gateway, json, post, startGateway, toneWav, until } from '../http/harness.ts';
import { openPage } from './browser.ts';

const CLIP = { name: 'clip.wav', mimeType: 'audio/wav', buffer: toneWav(1) };

/** The operations that no request of a page can succeed with, and their answers. */
const REFUSED = new Map([['get /v1/realtime', '426']]);
/** Runs last, because others need what it deletes. */
const LAST = 'post /admin/api/observability/clear-payload';

/** The operations of the description that are for readers, as `method path`. */
async function described({ base }: Gateway): Promise<string[]> {
  const { paths } = await json(await fetch(`${base}/openapi.json`));
  return Object.entries<Record<string, Record<string, unknown>>>(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, operation]) => operation['x-internal'] !== true)
      .map(([method]) => `${method} ${path}`),
  );
}

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

/** The same for all of them, in the page itself, because each step from here would wait for a frame to be drawn. */
function executeAll(page: Page, names: string[]): Promise<Record<string, string>> {
  return page.evaluate<Record<string, string>>(`(async () => {
    const clip = new File([Uint8Array.from(atob('${CLIP.buffer.toString('base64')}'), (c) => c.charCodeAt(0))], 'a.wav');
    const choose = (input) => {
      const chosen = new DataTransfer();
      chosen.items.add(clip);
      input.files = chosen.files;
      input.dispatchEvent(new Event('change', { bubbles: true }));
    };
    const statusOf = async (block) => {
      let pressed = false;
      const end = performance.now() + 20_000;
      while (performance.now() < end) {
        const status = block.querySelector('.live-responses-table tbody .response-col_status');
        if (status) return status.textContent.trim();
        const button = block.querySelector('.opblock-section ~ * .execute');
        if (button && !pressed) {
          block.querySelectorAll('input[type=file]').forEach(choose);
          button.click();
          pressed = true;
        }
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return 'no answer';
    };
    const blocks = [...document.querySelectorAll('.opblock')];
    const nameOf = (block) => block.querySelector('.opblock-summary-method').textContent.toLowerCase() + ' ' +
      block.querySelector('[data-path]').dataset.path;
    const statuses = {};
    for (const name of ${JSON.stringify(names)}) {
      const block = blocks.find((one) => nameOf(one) === name);
      block.querySelector('.opblock-summary-control').click();
      statuses[name] = await statusOf(block);
      block.querySelector('.opblock-summary-control').click();
    }
    return statuses;
  })()`);
}

/**
 * Executes every operation of the description with nothing but what it needs. It takes half a minute, because Swagger
 * UI draws all operations again at each step: the check does it in one theme, and `test/deep/` in the other.
 */
export async function executeEveryOperation(
  t: TestContext,
  browser: Browser,
  colorScheme: 'light' | 'dark',
): Promise<void> {
  await using upstream = await startHostileUpstream();
  const { url } = upstream;
  upstream.behave((socket, head) => {
    const type = /^POST \S+\/speech(\/stream)? /.test(head) ? 'audio/wav' : 'application/json';
    wholeAnswer('{"data": []}', '200 OK', { 'Content-Type': type })(socket, head);
  });
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  const headers = { 'X-Request-ID': 'my-request' };
  assert.equal((await post(gateway, form(toneWav(1)), { headers })).status, 200);
  const capture = `${gateway.base}/admin/captures/my-request`;
  await until('the request is captured', async () => (await fetch(capture)).status === 200);

  await using open = await openPage(browser, `${gateway.base}/docs`, { colorScheme });
  const operations = await shown(open.page);
  const names = operations.map(({ name }) => name);
  assert.equal(names[0], 'post /v1/audio/transcriptions');
  assert.deepEqual([...names].sort(), (await described(gateway)).sort());

  const isLast = (name: string) => name === LAST;
  const inOrder = [...names.filter((name) => !isLast(name)), ...names.filter(isLast)];
  const statuses = await executeAll(open.page, inOrder);
  const unexpected = Object.entries(statuses)
    .filter(([name, status]) => !(REFUSED.get(name) ?? '200 204').split(' ').includes(status))
    .map(([name, status]) => `${name}: ${status}`);
  t.diagnostic(
    `${Object.keys(statuses).length} operations executed, ${unexpected.length} unexpected statuses`,
  );
  assert.deepEqual(unexpected, []);
  const { categories } = await json(await fetch(`${gateway.base}/admin/api/metrics`));
  assert(categories.asr.total > 4, 'an untouched switch leaves the metrics on');
}
