/** The tab says how the gateway is, also to a reader who looks at another page. */

const calm = document.title;
const icon = document.querySelector('link[rel="icon"]');
/** The names of the pictures in `assets`. */
const ICONS = { ok: 'voxgate', busy: 'voxgate-busy', warn: 'voxgate-warn', bad: 'voxgate-bad' };
const SIGNS = { bad: '⛔ ', warn: '⚠ ', busy: '▶ ' };

/**
 * @param level `ok`, `busy`, `warn` or `bad`
 * @param words what the title begins with; empty for the title of the page
 */
export function showInTab(level, words = '') {
  const title = words === '' ? calm : `${SIGNS[level] ?? ''}${words} · voxgate`;
  const href = new URL(`../${ICONS[level] ?? ICONS.ok}.svg`, import.meta.url).href;
  // Each assignment makes some browsers draw the tab anew.
  if (document.title !== title) document.title = title;
  if (icon.href !== href) icon.href = href;
}
