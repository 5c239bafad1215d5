/** Keeps the end of a growing box in view, unless the reader has scrolled up to read. */

/** How far from the end a reader may be who is still reading the end, in pixels. */
const NEAR_END = 40;

/** @param box the element that scrolls */
export function createFollowing(box) {
  let isFollowing = true;
  let before = 0;
  // A box that scrolls smoothly is far from its end while it is on its way there. Only a reader scrolls up.
  box.addEventListener('scroll', () => {
    if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END) isFollowing = true;
    else if (box.scrollTop < before) isFollowing = false;
    before = box.scrollTop;
  });
  return {
    /** Called after something was added at the end. @returns false where the reader has scrolled up */
    grown() {
      if (isFollowing) box.scrollTop = box.scrollHeight;
      return isFollowing;
    },
    /** Called when the box is empty again. */
    reset() {
      isFollowing = true;
      before = 0;
    },
  };
}
