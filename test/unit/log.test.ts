/** The log of the process has lines for people, of bounded length. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { keyFinder } from '../../src/gateway-keys.ts';
import { createLog } from '../../src/observability/log.ts';
import { createLogTail } from '../../src/observability/log-tail.ts';

/** What is written to the log from now on. */
function written(t: TestContext): string[] {
  const lines: string[] = [];
  t.mock.method(process.stderr, 'write', (line: string) => lines.push(line) > 0);
  // The transport of the log writes to the console of Node, which writes to standard error.
  t.mock.method(console, 'error', (line: string) => void lines.push(line));
  return lines;
}

test('a line of the log has a bound, however long its details are', (t) => {
  const lines = written(t);
  createLog('info').warn('it failed', { reason: 'x'.repeat(1_000_000), short: 'seen' });
  assert(lines.length > 0);
  const longest = Math.max(...lines.map((line) => line.length));
  assert(longest > 1000 && longest < 17_000, `${longest} characters`);
  assert.match(lines[0] ?? '', /^\S+ warn {2}it failed reason=x+…/);
});

test('what a client sent can neither begin a line of the log nor steer a terminal', (t) => {
  const lines = written(t);
  const reason = 'Unknown model "x\n2026-11-26T00:00:00.000Z error FAKE LINE\x1b[31m\r\x7f\x9b2J"';
  createLog('debug').debug('request refused', { reason, list: ['\x9b'] });
  createLog('debug').debug(reason);
  for (const line of lines) assert.match(line, /^\S+ debug \P{Cc}+\n?$/u);
  assert.match(lines.join(''), /"x\\n2026-11-26T\S+ error FAKE LINE\\u001b\[31m\\u000d\\u007f\\u009b2J"/);
});

test('the stack of an error keeps its lines, of which none looks like another entry', (t) => {
  const lines = written(t);
  const { stack } = new Error('no\nsuch model');
  createLog('debug').error('request failed', { cause: stack });
  assert.match(lines.join(''), /cause=Error: no\\nsuch model\n {4}at /);
  createLog('debug').error('It cannot be loaded.\n    What to do: build it');
  assert.match(lines.join(''), / error It cannot be loaded\.\n {4}What to do: build it/);
});

test('the tail of the log has its last lines, newest first, cut, and none with a key', (t) => {
  const lines = written(t);
  const log = createLog('info');
  const tail = createLogTail(log, keyFinder(['secret-key-of-the-gateway']));
  log.warn('it failed', { reason: 'x'.repeat(2000) });
  log.debug('this is below the level of the log');
  log.info('a client sent secret-key-of-the-gateway');
  const [last, first] = tail.lines();
  assert.equal(lines.length, 2);
  assert.deepEqual([last?.text, last?.level, last?.number], ['***', 'info', 2]);
  assert.match(first?.text ?? '', /^\S+ warn {2}it failed reason=x{400}/);
  assert.deepEqual([first?.level, first?.text.length], ['warn', 501]);
  for (let n = 0; n < 150; n++) log.info(`line ${n}`);
  assert.equal(tail.lines().length, 100);
  assert.match(tail.lines()[0]?.text ?? '', /line 149$/);
  tail.stop();
  log.info('after the end');
  assert.match(tail.lines()[0]?.text ?? '', /line 149$/);
});
