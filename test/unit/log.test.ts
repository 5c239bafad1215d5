/** The log of the process has lines for people, of bounded length. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLog } from '../../src/observability/log.ts';

test('a line of the log has a bound, however long its details are', (t) => {
  const lines: string[] = [];
  t.mock.method(process.stderr, 'write', (line: string) => lines.push(line) > 0);
  // The transport of the log writes to the console of Node, which writes to standard error.
  const write = t.mock.method(console, 'error', (line: string) => void lines.push(line));
  createLog('info').warn('it failed', { reason: 'x'.repeat(1_000_000), short: 'seen' });
  assert(lines.length + write.mock.callCount() > 0);
  const longest = Math.max(...lines.map((line) => line.length));
  assert(longest > 1000 && longest < 17_000, `${longest} characters`);
  assert.match(lines[0] ?? '', /^\S+ warn {2}it failed reason=x+…/);
});
