/** Polls until the condition holds, and fails with its name when it does not hold in time. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 5000,
): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
