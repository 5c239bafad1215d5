/**
 * A reader of the page of the API who changes nothing, and only chooses a file where one is asked for, gets an answer from
 * every operation. It takes half a minute, because Swagger UI draws all operations again at each step.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { CLIP, shown } from '../browser/api-page.ts';
import { browserOfFile, openPage } from '../browser/browser.ts';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { captureOne, type Gateway, json, startGateway } from '../http/harness.ts';

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

/** Executes all of them in the page itself, because each step from here would wait for a frame to be drawn. */
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

const browser = await browserOfFile();

test('Execute is answered on every operation with nothing but what it needs', async (t) => {
  await using upstream = await startHostileUpstream();
  const { url } = upstream;
  upstream.behave((socket, head) => {
    const type = /^POST \S+\/speech(\/stream)? /.test(head) ? 'audio/wav' : 'application/json';
    wholeAnswer('{"data": []}', '200 OK', { 'Content-Type': type })(socket, head);
  });
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  await captureOne(gateway);

  await using open = await openPage(browser, `${gateway.base}/docs`);
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
});
