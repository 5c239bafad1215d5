/** Opens for all when it was asked for that often: for tests that need several things to be under way at once. */
export function gateOf(times: number): () => Promise<void> {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return () => {
    times -= 1;
    if (times === 0) open();
    return opened;
  };
}
