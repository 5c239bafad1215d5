/** Starts Chromium without a window, and opens a page that reports everything a page of ours must not do. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { after } from 'node:test';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const WHOLE_BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];

function launch(names: readonly string[], args: readonly string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: findOnPath(names),
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...args],
  });
}

/** The headless shell is the same engine without the interface of a browser, and computes half as much. */
export function launchBrowser(...args: string[]): Promise<Browser> {
  return launch(['chromium-headless-shell', ...WHOLE_BROWSERS], args);
}

/** A browser that asks its reader whether a page may use the microphone, and gives devices the same ids after a reload. */
export function launchWholeBrowser(...args: string[]): Promise<Browser> {
  return launch(WHOLE_BROWSERS, args);
}

/** The browser of a test file, which is closed when its tests have ended. */
export async function browserOfFile(...args: string[]): Promise<Browser> {
  const browser = await launchBrowser(...args);
  after(() => browser.close());
  return browser;
}

/** The same with a microphone that may be used, and plays a wav again and again. */
export async function browserHearing(wav: Buffer, ...args: string[]): Promise<Browser> {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-microphone-'));
  const path = join(folder, 'microphone.wav');
  writeFileSync(path, wav);
  const browser = await browserOfFile(
    '--use-fake-device-for-media-stream',
    '--use-fake-ui-for-media-stream',
    `--use-file-for-fake-audio-capture=${path}`,
    ...args,
  );
  after(() => rmSync(folder, { recursive: true }));
  return browser;
}

function findOnPath(names: readonly string[]): string {
  for (const name of names) {
    for (const dir of (process.env.PATH ?? '').split(delimiter)) {
      if (existsSync(join(dir, name))) return join(dir, name);
    }
  }
  throw new Error('No chromium on the PATH. On Debian: apt-get install chromium chromium-headless-shell');
}

export interface OpenPage extends AsyncDisposable {
  page: Page;
}

/**
 * Fails on disposal for script errors, violations of the content security policy and requests to other hosts.
 * @param started for this page alone; it ends with the page, also with one that does not open
 */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  ...started: AsyncDisposable[]
): Promise<OpenPage> {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  context.setDefaultTimeout(10_000);
  await context.grantPermissions(['clipboard-read', 'clipboard-write', 'microphone']);
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on('pageerror', (error) => wrong.push(`error: ${error.stack ?? error.message}`));
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    // Some tests make requests fail on purpose, and a poll is aborted by what the reader does; htmx logs those too.
    const failed =
      /^(Failed to load resource|Response Status Error|htmx:(sendError|sendAbort|afterRequest),)/;
    if (message.type() === 'error' && !failed.test(message.text())) wrong.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url());
    if (!['blob:', 'data:'].includes(protocol) && host !== new URL(url).host)
      wrong.push(`request to ${request.url()}`);
  });
  const end = async () => {
    await context.close();
    for (const one of started) await one[Symbol.asyncDispose]();
  };
  await page.goto(url).catch(async (error) => {
    await end();
    throw error;
  });
  return {
    page,
    async [Symbol.asyncDispose]() {
      await end();
      assert.deepEqual(wrong, []);
    },
  };
}

/** What was copied last. */
export const clipboard = (page: Page) => page.evaluate<string>('navigator.clipboard.readText()');

export const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click();
export const status = (page: Page, text: string | RegExp) =>
  page.getByRole('status').filter({ hasText: text }).waitFor();

/** Whether something is wider than the window, and what. */
export const tooWide = (page: Page) =>
  page.evaluate<string[]>(`(() => {
    const scrolls = (element) => {
      for (let at = element.parentElement; at !== null; at = at.parentElement)
        if (at !== document.documentElement && at !== document.body &&
            getComputedStyle(at).overflowX !== 'visible') return true;
      return false;
    };
    const name = (element) => element.tagName.toLowerCase() + (element.id ? '#' + element.id : '') +
      (typeof element.className === 'string' && element.className ? '.' + element.className.split(' ').join('.') : '');
    const found = [...document.querySelectorAll('body *')].filter((element) => {
      const { left, right, width } = element.getBoundingClientRect();
      return width > 0 && element.checkVisibility() && (right > innerWidth + 0.5 || left < -0.5) && !scrolls(element) &&
        !element.closest('.visually-hidden, .skip');
    }).map(name);
    if (document.documentElement.scrollWidth > innerWidth)
      found.push('the page, by ' + (document.documentElement.scrollWidth - innerWidth) + ' px');
    return found;
  })()`);
