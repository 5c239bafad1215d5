/**
 * Puts a new state into a section without taking anything from its reader: an element that is still there stays
 * the same element, so focus, selected text and scroll positions survive, and what did not change is not announced.
 *
 * An element is known by its id or `data-key`, else by its name and place. Keyed ones keep their order; none is
 * ever moved. What has `data-linger` is left alone: whoever put it there takes it away.
 */

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || '' : '');
const isElement = (node) => node.nodeType === Node.ELEMENT_NODE;
const lingers = (node) => isElement(node) && 'linger' in node.dataset;
const isSame = (a, b) => a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

/** @returns the elements that are new in the page */
export function putIn(target, wanted) {
  const focused = target.contains(document.activeElement) ? pathUp(document.activeElement, target) : [];
  const added = [];
  mergeChildren(target, wanted, added);
  if (focused.length > 0 && !target.contains(document.activeElement)) refocus(focused, target);
  return added;
}

function mergeChildren(parent, wanted, added) {
  const next = [...wanted.childNodes].filter((node) => node.nodeType !== Node.COMMENT_NODE);
  if (next.some(lingers)) for (const old of [...parent.childNodes].filter(lingers)) old.remove();
  const keys = new Set(next.map(keyOf).filter((key) => key !== ''));
  let at = parent.firstChild;
  for (const node of next) {
    const match = lingers(node) ? null : find(at, node, keys);
    if (match === null) {
      parent.insertBefore(node, at);
      if (isElement(node)) added.push(node);
      continue;
    }
    at = removeBetween(at, match).nextSibling;
    if (isElement(match)) mergeElement(match, node, added);
    else if (match.data !== node.data) match.data = node.data;
  }
  removeBetween(at, null);
}

/** The first node from `at` on that is `node`, without passing over one that is still wanted for itself. */
function find(at, node, keys) {
  for (let old = at; old !== null; old = old.nextSibling) {
    if (lingers(old)) continue;
    if (isSame(old, node)) return old;
    // Text is only itself in its place: to look further would remove what stands before it.
    if (!isElement(node) || (keyOf(node) === '' && keys.has(keyOf(old)))) return null;
  }
  return null;
}

/** Up to `end`, which is returned. */
function removeBetween(at, end) {
  for (let old = at; old !== end; ) {
    const { nextSibling } = old;
    if (!lingers(old)) old.remove();
    old = nextSibling;
  }
  return end;
}

function mergeElement(old, node, added) {
  for (const { name, value } of [...node.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) if (!node.hasAttribute(name)) old.removeAttribute(name);
  mergeChildren(old, node, added);
}

/** An element and what it stands in, up to the section. */
function pathUp(element, section) {
  const path = [];
  for (let at = element; at !== section; at = at.parentElement) path.push(at);
  return path;
}

/** What had the focus is gone: it goes to the nearest thing that can have it. */
function refocus(path, section) {
  const home = path.find((element) => section.contains(element)) ?? section;
  const nearest = home.querySelector('button, a[href], [tabindex]') ?? section;
  if (nearest === section) section.tabIndex = -1;
  nearest.focus({ preventScroll: true });
}
