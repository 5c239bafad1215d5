/**
 * What the browser keeps for this page, or only for this tab. A browser may refuse to, where its visitor blocks cookies or
 * the disk is full: the values then last as long as the page.
 */

/** @param of () => Storage, which may throw */
function createStorage(of) {
  /** Holds what the browser did not take. */
  const refused = new Map();
  return {
    /** @returns {string | null} */
    get(key) {
      if (refused.has(key)) return refused.get(key);
      try {
        return of().getItem(key);
      } catch {
        return null;
      }
    },
    /** @param value null removes it */
    set(key, value) {
      refused.delete(key);
      try {
        of().removeItem(key);
        if (value !== null) of().setItem(key, value);
      } catch {
        refused.set(key, value);
      }
    },
  };
}

/** Until the tab is closed. */
export const inTab = createStorage(() => sessionStorage);
