/** Tokens are few enough, are over at their time, and no client takes those of the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTokens } from '../../src/http/access/tokens.ts';

function setUp(most: number) {
  let nowMs = 0;
  const tokens = createTokens<string>({ most, prefix: 'ek_' }, () => nowMs);
  return {
    tokens,
    pass: (ms: number) => {
      nowMs += ms;
    },
    issue: (network: string, value = network, lifetimeMs = 1000) =>
      tokens.issue(value, { network, lifetimeMs }),
  };
}

test('a token stands for its value until its time is over, and no other token does', () => {
  const { tokens, pass, issue } = setUp(10);
  const token = issue('a', 'value', 1000);
  assert.match(token, /^ek_[\w-]{43}$/);
  assert.notEqual(token, issue('a'));
  pass(999);
  assert.equal(tokens.find(token), 'value');
  for (const other of ['', 'ek_', token.slice(0, -1), token.slice(3), `${token} `, '__proto__'])
    assert.equal(tokens.find(other), undefined, other);
  pass(1);
  assert.equal(tokens.find(token), undefined);
  const ended = issue('a');
  tokens.end(ended);
  assert.equal(tokens.find(ended), undefined);
});

test('a network that takes all tokens loses its oldest to others, and otherwise its own', () => {
  const { tokens, issue } = setUp(4);
  const many = [1, 2, 3, 4].map((n) => issue('many', `${n}`));
  const few = [issue('few'), issue('few')];
  assert.deepEqual(
    many.map((token) => tokens.find(token)),
    [undefined, undefined, '3', '4'],
  );
  issue('many', '5');
  assert.deepEqual(
    [...many, ...few].map((token) => tokens.find(token)),
    [undefined, undefined, undefined, '4', 'few', 'few'],
  );
  const { tokens: each, issue: issueOne } = setUp(2);
  const [oldest, newer] = [issueOne('a'), issueOne('b')];
  issueOne('c');
  assert.deepEqual([each.find(oldest), each.find(newer)], [undefined, 'b']);
});

test('tokens that are over make room first', () => {
  const { tokens, pass, issue } = setUp(2);
  const long = issue('a', 'long', 5000);
  issue('a', 'short', 1000);
  pass(2000);
  const next = issue('a', 'next');
  assert.deepEqual([tokens.find(long), tokens.find(next)], ['long', 'next']);
});
