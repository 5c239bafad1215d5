/**
 * Shows Markdown that a model wrote, which nobody may trust: no HTML of its own, no picture and no frame, and links that
 * leave in a tab of their own. The packages are loaded when the first answer needs them.
 */

/** A longer text is shown as it came. Answers are hundreds of times shorter. */
const MOST_CHARS = 400_000;
/** Marked recurses into each level, in quadratic time. No real text is nested this deeply. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){24}/m;

const CLEAN = {
  ALLOWED_TAGS: [
    ...[
      'a',
      'blockquote',
      'br',
      'code',
      'del',
      'em',
      'h1',
      'h2',
      'h3',
      'h4',
      'h5',
      'h6',
      'hr',
      'li',
      'ol',
      'p',
    ],
    ...['pre', 'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul'],
  ],
  ALLOWED_ATTR: ['align', 'class', 'href', 'start'],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:\/\/|mailto:)/i,
  RETURN_DOM_FRAGMENT: true,
};

const escaped = (text) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** HTML is shown as it was written. A picture becomes a link to it, since looking at it would tell its host so. */
const renderer = {
  html: ({ text }) => escaped(text),
  image({ href, text }) {
    return `<a href="${escaped(href)}">${escaped(text || 'picture')}</a>`;
  },
  checkbox: ({ checked }) => (checked ? '☑ ' : '☐ '),
};

let loading = null;

/** @returns {Promise<{lex(text): object[], render(tokens): DocumentFragment}>} */
export function loadMarkdown() {
  loading ??= Promise.all([import('../vendor/marked.esm.js'), import('../vendor/purify.min.js')]).then(
    ([{ Marked }]) => create(new Marked({ gfm: true, breaks: true, renderer })),
  );
  loading.catch(() => {
    loading = null; // the next answer tries again
  });
  return loading;
}

function create(marked) {
  return {
    /** The blocks of a text, each with its `raw` part of it. */
    lex(text) {
      if (text.length > MOST_CHARS || TOO_DEEP.test(text)) return [plain(text)];
      try {
        return marked.lexer(text);
      } catch {
        return [plain(text)];
      }
    },
    render(tokens) {
      const html = tokens.some(({ type }) => type === PLAIN) ? null : parsed(marked, tokens);
      if (html === null) return paragraph(tokens.map(({ raw }) => raw).join(''));
      const fragment = globalThis.DOMPurify.sanitize(html, CLEAN);
      for (const link of fragment.querySelectorAll('a')) finishLink(link);
      for (const pre of fragment.querySelectorAll('pre')) finishCode(pre);
      for (const table of fragment.querySelectorAll('table')) finishTable(table);
      return fragment;
    },
  };
}

const PLAIN = 'plain';
const plain = (raw) => ({ type: PLAIN, raw });

function parsed(marked, tokens) {
  try {
    return marked.parser(tokens);
  } catch {
    return null;
  }
}

function paragraph(text) {
  const p = document.createElement('p');
  p.className = 'as-written';
  p.textContent = text;
  const fragment = document.createDocumentFragment();
  fragment.append(p);
  return fragment;
}

function finishLink(link) {
  link.removeAttribute('class');
  if (!link.hasAttribute('href')) return;
  link.rel = 'noopener noreferrer nofollow';
  link.target = '_blank';
}

function finishCode(pre) {
  const code = pre.querySelector('code');
  const language = /^language-([\w+#.-]{1,20})/.exec(code?.className ?? '')?.[1] ?? 'code';
  code?.removeAttribute('class');
  const head = document.createElement('div');
  head.className = 'code-head';
  const name = document.createElement('span');
  name.className = 'note';
  name.textContent = language;
  const button = document.createElement('button');
  button.className = 'small';
  button.type = 'button';
  button.dataset.do = 'copy-code';
  button.textContent = 'Copy code';
  head.append(name, button);
  const box = document.createElement('div');
  box.className = 'code-block';
  box.dir = 'ltr';
  pre.tabIndex = 0; // else a keyboard could not scroll it
  pre.replaceWith(box);
  box.append(head, pre);
}

function finishTable(table) {
  const box = document.createElement('div');
  box.className = 'table-scroll';
  box.tabIndex = 0;
  table.replaceWith(box);
  box.append(table);
}

/** Puts the headings below the page's own, with no level left out. */
function settleHeadings(box) {
  let level = 2;
  for (const heading of box.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    level = Math.min(Number(heading.localName[1]) + 2, level + 1, 6);
    if (heading.localName === `h${level}`) continue;
    const next = document.createElement(`h${level}`);
    next.append(...heading.childNodes);
    heading.replaceWith(next);
  }
}

/** Marked counts line ends as one character each. */
const unified = (text) => text.replace(/\r\n?/g, '\n');

/** Of the time, a growing text takes a ninth at most. */
const REST = 8;
const MOST_REST_MS = 1000;

/**
 * A text that grows. Blocks that are complete are rendered once; only the last one is rendered again, at most once a
 * frame, and less often the longer it takes.
 * @param box the element that it fills
 * @param read () => string, the whole text so far
 * @param onShown () => void, called when something more was shown
 */
export function createMarkdownView(box, read, onShown) {
  let markdown = null;
  let text = '';
  let settled = 0;
  let tail = [];
  let frame = null;
  let restUntil = 0;

  function showTail(fragment) {
    for (const node of tail) node.remove();
    tail = [...fragment.childNodes];
    box.append(fragment);
  }

  function show() {
    frame = null;
    const now = performance.now();
    if (now < restUntil) return later();
    take(unified(read()));
    if (markdown === null) showTail(paragraph(text));
    else showMarkdown();
    restUntil = performance.now() + Math.min(MOST_REST_MS, (performance.now() - now) * REST);
    onShown();
  }

  /** What was shown may have turned out to be a thought, when all begins anew. */
  function take(next) {
    if (!next.startsWith(text.slice(0, settled))) {
      settled = 0;
      tail = [];
      box.replaceChildren();
    }
    text = next;
  }

  function showMarkdown() {
    const tokens = markdown.lex(text.slice(settled));
    const last = tokens.findLastIndex(({ type }) => type !== 'space');
    const done = tokens.slice(0, Math.max(0, last));
    if (done.length > 0) {
      showTail(markdown.render(done));
      tail = [];
      settled += done.reduce((sum, { raw }) => sum + raw.length, 0);
    }
    showTail(markdown.render(tokens.slice(Math.max(0, last))));
  }

  function later() {
    if (frame === null) frame = requestAnimationFrame(show);
  }

  return {
    /** The text has grown. */
    grow() {
      later();
      if (markdown !== null) return;
      loadMarkdown().then(
        (loaded) => {
          markdown = loaded;
        },
        () => {}, // the text stays as it came
      );
    },
    /** The text is whole. */
    async end() {
      markdown ??= await loadMarkdown().catch(() => null);
      if (frame !== null) cancelAnimationFrame(frame);
      frame = null;
      const whole = unified(read());
      box.replaceChildren(markdown === null ? paragraph(whole) : markdown.render(markdown.lex(whole)));
      settleHeadings(box);
      onShown();
    },
  };
}
