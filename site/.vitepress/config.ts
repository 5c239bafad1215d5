/** The documents of the repository as a site. Nothing is copied: the pages are the files that GitHub shows. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { defineConfig, type MarkdownOptions } from 'vitepress';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const { description, repository } = JSON.parse(read('package.json'));

/** Where files that are no pages are read; without a repository a link to one is only its text. */
const repositoryUrl: string | undefined = (repository?.url ?? repository)?.replace(/^git\+|\.git$/g, '');

/** Names the page of a Markdown file: what has a folder of its own there is at the top here. */
function pageOf(path: string): string {
  return path
    .replace(/^docs\//, '')
    .replace(/(^|\/)README\.md$/, '$1index.md')
    .toLowerCase();
}

/** The questions that readers have, and the pages that answer each, stand in one place: `Read on` of the README. */
function questions(): { text: string; items: { text: string; link: string }[] }[] {
  const [, readOn = ''] = /^## Read on$(.*?)^## /ms.exec(read('README.md')) ?? [];
  const groups = readOn.split(/^### /m).slice(1);
  return groups.map((group) => ({
    text: group.split('\n', 1)[0] ?? '',
    items: [...group.matchAll(/\]\(([\w./-]+\.md)\)/g)].map(([, path = '']) => ({
      text: /^# (.*)$/m.exec(read(path))?.[1] ?? path,
      link: `/${pageOf(path)}`,
    })),
  }));
}

const logo = `data:image/svg+xml,${encodeURIComponent(read('assets/voxgate.svg'))}`;

/** The first page shows the beginning of the README as a hero and cards, so nothing of it is written twice. */
function firstPage() {
  const [beginning = ''] = read('README.md').split(/^## /m, 1);
  const plain = (text = '') =>
    text
      .replace(/\s+/g, ' ')
      .replace(/ \(\[[^\]]*\]\([^)]*\)\)/g, '')
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll('`', '')
      .trim();
  const [, text, tagline] = /^\*\*(.*?)\*\*.*?^\*\*(.*?)\*\*/ms.exec(beginning) ?? [];
  return {
    layout: 'home',
    hero: {
      name: 'voxgate',
      text: plain(text).replace(/\.$/, ''),
      tagline: plain(tagline),
      image: { src: logo, alt: '' },
      actions: [
        { text: 'Start', link: '#start' },
        { theme: 'alt', text: 'API', link: '/api' },
        { theme: 'alt', text: 'Performance', link: '/performance' },
      ],
    },
    features: [...beginning.matchAll(/^- \*\*(.*?)\*\*(.*?)(?=^- |\n\n)/gms)].map(
      ([, title = '', details]) => ({ title: title.replace(/\.$/, ''), details: plain(details) }),
    ),
  };
}

/** Makes the anchor of a heading as GitHub does, so that a link leads to the same place here and there. */
function slugify(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** Where a link of a file leads on the site; undefined where it leads nowhere. */
function linkTarget(href: string, file: string): string | undefined {
  if (/^([a-z]+:|#)/.test(href)) return href;
  const [target = '', anchor] = href.split('#');
  const path = posix.normalize(posix.join(dirname(relative(ROOT, file)), target));
  if (!existsSync(join(ROOT, path))) throw new Error(`${file}: ${href} is not there`);
  const hash = anchor === undefined ? '' : `#${anchor}`;
  if (PAGE.test(path)) return `/${pageOf(path)}${hash}`;
  const kind = statSync(join(ROOT, path)).isDirectory() ? 'tree' : 'blob';
  return repositoryUrl && `${repositoryUrl}/${kind}/HEAD/${path}${hash}`;
}

const PAGE = /^((docs|examples)\/.*)?[\w-]+\.md$/;

type MarkdownPlugin = NonNullable<MarkdownOptions['config']>;

/** Makes links that fit the repository fit the site, before VitePress looks for dead ones. */
const followLinks: MarkdownPlugin = (md) => {
  md.core.ruler.push('follow_links', ({ tokens, env }) => {
    for (const { children } of tokens) {
      let unlinked = false;
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          // The search index renders the file without a `realPath`.
          const target = linkTarget(token.attrGet('href') ?? '', env.realPath ?? env.path);
          if (target !== undefined) token.attrSet('href', target);
          unlinked = target === undefined;
        }
        if (unlinked && /^link_(open|close)$/.test(token.type))
          Object.assign(token, { type: 'text', content: '' });
      }
    }
  });
};

/** Gives code blocks of Mermaid to the component that draws them; all others are highlighted. */
const drawDiagrams: MarkdownPlugin = (md) => {
  const highlight = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index] ?? {};
    if (info === 'mermaid') return `<Diagram source="${md.utils.escapeHtml(content ?? '')}" />`;
    return highlight?.(tokens, index, ...rest) ?? '';
  };
};

/** Leaves out of the first page what its hero and its cards say. */
const leaveOutBeginning: MarkdownPlugin = (md) => {
  md.core.ruler.push('leave_out_beginning', (state) => {
    if ((state.env.realPath ?? state.env.path) !== join(ROOT, 'README.md')) return;
    const { tokens } = state;
    const isAt = (type: string, from = 0) => tokens.findIndex((token, i) => i >= from && token.type === type);
    const list = isAt('bullet_list_open');
    state.tokens = [
      ...tokens.slice(isAt('paragraph_open', isAt('paragraph_close', isAt('paragraph_close') + 1)), list),
      ...tokens.slice(isAt('bullet_list_close', list) + 1),
    ];
  });
};

export default defineConfig({
  title: 'voxgate',
  description,
  head: [['link', { rel: 'icon', href: logo }]],
  transformPageData: (page) => {
    if (page.relativePath === 'index.md') page.frontmatter = firstPage();
  },
  srcDir: ROOT,
  srcExclude: ['!(docs|examples|*.md)/**'],
  rewrites: pageOf,
  cacheDir: 'node_modules/.cache',
  markdown: {
    anchor: { slugify },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    // `{id}` in a heading is a part of a path, not an attribute.
    attrs: { disable: true },
    config: (md) => md.use(leaveOutBeginning).use(followLinks).use(drawDiagrams),
  },
  vite: {
    plugins: [
      {
        // The pages lie outside of this folder, where their compiled code would find no Vue.
        name: 'vue-of-site',
        enforce: 'pre',
        resolveId(source, importer, options) {
          if (!importer?.endsWith('.md') || !/^vue(\/|$)/.test(source)) return undefined;
          return this.resolve(source, import.meta.filename, { ...options, skipSelf: true });
        },
      },
    ],
    // One chunk is Mermaid, which only the pages with diagrams load.
    build: { chunkSizeWarningLimit: 1000 },
  },
  themeConfig: {
    logo,
    nav: questions(),
    sidebar: [{ text: 'Overview', link: '/' }, ...questions()],
    outline: [2, 3],
    search: {
      provider: 'local',
      // The name of a setting is one word, so that it is found as a whole.
      options: { miniSearch: { options: { tokenize: (text) => text.split(/[^\p{L}\p{N}_]+/u) } } },
    },
    ...(repositoryUrl && { socialLinks: [{ icon: 'github', link: repositoryUrl }] }),
  },
});
