import { suite } from 'node:test';

/** Tests of a file that run at the same time, as they wait much more than they compute and need nothing of each other. */
export function sideBySide(tests: () => void, most = 4): void {
  suite('side by side', { concurrency: most }, tests);
}
