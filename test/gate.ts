/** Opens for all callers at once when it was asked often enough, for tests that need several things to be under way. */
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
