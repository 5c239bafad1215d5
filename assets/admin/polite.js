/**
 * Puts a new state into a section without taking anything from its reader: an element that is still there stays the
 * same element, so focus, selected text and scroll positions survive, and screen readers do not announce what did not
 * change.
 *
 * An element is known by its id or `data-key`, else by its name and place. Keyed elements keep their order, and no
 * element is ever moved. An element with `data-linger` is left alone; the code that put it there removes it.
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

/**
 * Finds the first node from `at` on that is the same as `node`. The search stops at an element that another wanted
 * node needs.
 */
function find(at, node, keys) {
  for (let old = at; old !== null; old = old.nextSibling) {
    if (lingers(old)) continue;
    if (isSame(old, node)) return old;
    // A text node has no identity but its place: looking further would remove the nodes before it.
    if (!isElement(node) || (keyOf(node) === '' && keys.has(keyOf(old)))) return null;
  }
  return null;
}

/** Removes the nodes from `at` up to `end`, and returns `end`. */
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
  // The reader opens a fold, and it stays open.
  const isTheirs = (name) => name === 'open' && old.nodeName === 'DETAILS';
  for (const { name } of [...old.attributes])
    if (!node.hasAttribute(name) && !isTheirs(name)) old.removeAttribute(name);
  mergeChildren(old, node, added);
}

/** Lists an element and its ancestors up to the section. */
function pathUp(element, section) {
  const path = [];
  for (let at = element; at !== section; at = at.parentElement) path.push(at);
  return path;
}

/** The element that had the focus is gone, so the nearest one that can have it gets it. */
function refocus(path, section) {
  const home = path.find((element) => section.contains(element)) ?? section;
  const nearest = home.querySelector('button, a[href], [tabindex]') ?? section;
  if (nearest === section) section.tabIndex = -1;
  nearest.focus({ preventScroll: true });
}
