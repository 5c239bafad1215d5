/** What the visitor chose last, in this browser; nothing of it is ever sent anywhere by itself. */

const keyOf = (tab) => `voxgate-last-${tab}`;

/** @returns an object, which is empty where nothing is known or the browser keeps nothing */
export function recall(tab) {
  try {
    return Object(JSON.parse(localStorage.getItem(keyOf(tab))));
  } catch {
    return {};
  }
}

export function remember(tab, choices) {
  try {
    localStorage.setItem(keyOf(tab), JSON.stringify(choices));
  } catch {
    // A browser that keeps nothing remembers nothing.
  }
}
