/**
 * Tells for how long something looks the same, such as a file that its owner touches regularly. The clocks of hosts
 * differ and may leap, so what it shows is compared only with what it showed before, and the time is this process's own.
 */

/** Returns a function that takes what it shows now, and returns for how many ms each look since has found the same. */
export function watchUnchanged(): (shown: string | number) => number {
  let before: string | number | null = null;
  let since = 0;
  return (shown) => {
    if (shown !== before) [before, since] = [shown, performance.now()];
    return performance.now() - since;
  };
}
