/** The site of the documents is built, and read in a browser. Its packages have 260 MB. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createReadStream, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { launchBrowser, openPage } from '../browser/browser.ts';
import { type LocalServer, listening } from '../local-server.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const DIST = join(ROOT, 'site/.vitepress/dist');
const BUILD_LIMIT_MS = 600_000;
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
};

/** Serves the files as a plain web server does. */
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://site');
  const path = join(DIST, pathname.endsWith('/') ? `${pathname}index.html` : pathname);
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) {
    response.writeHead(404).end();
    return;
  }
  response.setHeader('Content-Type', TYPES[extname(path)] ?? 'application/octet-stream');
  createReadStream(path).pipe(response);
});

let browser: Browser;
let site: LocalServer;
let pages: string[];
before(
  async () => {
    execFileSync('npm', ['run', '--silent', 'site'], { cwd: ROOT, stdio: 'pipe', timeout: BUILD_LIMIT_MS });
    pages = readdirSync(DIST, { recursive: true })
      .map(String)
      .filter((path) => path.endsWith('.html') && path !== '404.html');
    site = await listening(server);
    browser = await launchBrowser();
  },
  { timeout: BUILD_LIMIT_MS },
);
after(async () => {
  await browser?.close();
  await site?.[Symbol.asyncDispose]();
});

const html = (path: string) => readFileSync(join(DIST, path), 'utf8');

/** Lists what a page links to or shows, without the fragment. */
const targets = (path: string) =>
  [...html(path).matchAll(/<(?:a|img|link|script)\b[^>]*? (?:href|src)="([^"]+)"/g)].map(
    ([, target = '']) => new URL(target.replaceAll('&amp;', '&'), `${site.base}/${path}`),
  );

test('every Markdown file that a reader is sent to is a page of the site, and named in its order', () => {
  const documents = ['', 'docs', 'docs/recipes', 'examples'].flatMap((dir) =>
    readdirSync(join(ROOT, dir))
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(dir, name)),
  );
  assert(documents.length > 20, `${documents.length} documents`);
  assert.equal(pages.length, documents.length, pages.join(' '));
  const sidebar = /<aside class="VPSidebar".*?<\/aside>/s.exec(html('api.html'))?.[0] ?? '';
  const named = [...sidebar.matchAll(/href="\/([^"]*)"/g)].map(([, path = '']) =>
    path.replace(/(^|\/)$/, '$1index.html'),
  );
  assert.deepEqual(named.sort(), [...pages].sort());
});

test('the first page says what voxgate is, and leads to the start', () => {
  const page = html('index.html');
  assert.match(page, /<h1[^>]*>.*voxgate.*without a GPU/s);
  assert.match(page, /<p[^>]*class="tagline"[^>]*>An hour of speech in \d+ s/);
  assert.equal(page.match(/An hour of speech in \d+ s/g)?.length, 1, 'the README repeats the hero');
  assert.equal(page.match(/class="VPLink[^"]* VPFeature"/g)?.length, 8);
  assert.match(page, /<h2 id="start"/);
});

test('every link within the site leads to a page and a heading that exist', async () => {
  const wanted = new Set<string>();
  for (const page of pages)
    for (const { origin, pathname, hash } of targets(page))
      if (origin === site.base) wanted.add(pathname + decodeURIComponent(hash));
  assert(wanted.size > 300, `${wanted.size} links`);
  const dead: string[] = [];
  for (const target of wanted) {
    const [path = '', fragment] = target.split('#');
    const answer = await fetch(site.base + path);
    const text = await answer.text();
    if (!answer.ok || (fragment && !text.includes(` id="${fragment}"`))) dead.push(target);
  }
  assert.deepEqual(dead, []);
});

test('every page has its pictures and diagrams, and neither errors nor requests to elsewhere', async () => {
  for (const path of pages) {
    await using open = await openPage(browser, `${site.base}/${path}`);
    const { page } = open;
    const source = html(path);
    await page.locator('h1').first().waitFor();
    const diagrams =
      source.match(/<pre[^>]*>\s*(?:flowchart|sequenceDiagram|graph|stateDiagram)/g)?.length ?? 0;
    await page.waitForFunction(`document.querySelectorAll('.diagram svg').length === ${diagrams}`);
    const missing = await page.evaluate<string[]>(`(async () => {
      const images = [...document.images];
      await Promise.allSettled(images.map((image) => image.decode()));
      return images.filter((image) => image.naturalWidth === 0).map((image) => image.src);
    })()`);
    assert.deepEqual(missing, [], path);
    assert.equal(diagrams > 0, ['architecture.html', 'native.html', 'scale.html'].includes(path), path);
  }
});

test('the search finds a setting by its name', async () => {
  await using open = await openPage(browser, site.base);
  const { page } = open;
  await page.getByRole('button', { name: 'Search' }).first().click();
  await page.getByRole('searchbox').fill('SVC_MAX_HOLD_SEC');
  const found = page.locator('.VPLocalSearchBox .result[href*="configuration"]').first();
  await found.click();
  await page.waitForURL(/\/configuration\.html/);
  await page.locator('td', { hasText: 'SVC_MAX_HOLD_SEC' }).first().waitFor();
});

const background = (page: Page) => page.evaluate<string>(`getComputedStyle(document.body).backgroundColor`);

test('a switch makes the pages dark, and the next page stays so', async () => {
  await using open = await openPage(browser, `${site.base}/scale.html`, { colorScheme: 'light' });
  const { page } = open;
  const light = await background(page);
  await page.getByRole('switch').locator('visible=true').first().click();
  await page.waitForFunction(`document.documentElement.classList.contains('dark')`);
  const dark = await background(page);
  assert.notEqual(dark, light);
  await page.goto(`${site.base}/api.html`);
  assert.equal(await background(page), dark);
});

test('every page keeps the rules of WCAG 2.1 AA that axe knows, light and dark', async () => {
  const axe = readFileSync(join(ROOT, 'site/node_modules/axe-core/axe.min.js'), 'utf8');
  // VitePress names its button `Search` and shows the keys that press it inside.
  const what = { exclude: [['.DocSearch-Button']] };
  const rules = { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa'] };
  const found: string[] = [];
  for (const path of pages)
    for (const colorScheme of ['light', 'dark'] as const) {
      await using open = await openPage(browser, `${site.base}/${path}`, { colorScheme });
      await open.page.evaluate(axe);
      const violations = await open.page.evaluate<string[]>(
        `axe.run(${JSON.stringify(what)}, ${JSON.stringify(rules)}).then(({ violations }) =>
          violations.map(({ id, nodes }) => nodes.length + ' ' + id + ', such as ' + nodes[0].html))`,
      );
      found.push(...violations.map((violation) => `${path}, ${colorScheme}: ${violation}`));
    }
  assert(found.length === 0, found.join('\n'));
});
