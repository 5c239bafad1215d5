/**
 * Polls until the condition holds, and fails with its name when it does not hold in time. A process that a busy machine
 * has stopped for longer than the limit still gets some polls, because its events arrive only between them.
 */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 5000,
  everyMs = 5,
): Promise<void> {
  const deadline = Date.now() + limitMs;
  for (let polls = 1; !(await condition()); polls++) {
    if (Date.now() > deadline && polls > LEAST_POLLS) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}

const LEAST_POLLS = 20;
