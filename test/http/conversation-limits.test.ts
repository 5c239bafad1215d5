/** A conversation that gets too long: what is forgotten is as its session says. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startTalk, TEXT, talkTo, write } from './talk.ts';

const asked = (messages: { content: string }[]) => messages.map(({ content }) => content);

test('the session says what is forgotten: the oldest, more than that, or nothing', async () => {
  await using talk = await startTalk({ budgets: { conversation: { items: 4 } } });
  await using client = await talkTo(talk, { ...TEXT, truncation: 'disabled' });
  const truncate = (truncation: unknown) =>
    client.send({ type: 'session.update', session: { type: 'realtime', truncation } });
  for (const text of 'abcd') write(client, text);
  write(client, 'e');
  assert.equal((await client.event('error')).error.code, 'conversation_full');
  client.send({ type: 'response.create' });
  const { response } = await client.event('response.done');
  assert.deepEqual([response.status, response.status_details.error.code], ['failed', 'conversation_full']);
  truncate('auto');
  write(client, 'e');
  client.send({ type: 'response.create' });
  await client.event('response.done', 2);
  assert.deepEqual(asked(talk.chat.asked[0].messages), ['b', 'c', 'd', 'e']);
  truncate({ type: 'retention_ratio', retention_ratio: 0.5, token_limits: { post_instructions: 1000 } });
  write(client, 'f');
  client.send({ type: 'response.create' });
  await client.event('response.done', 3);
  assert.equal(asked(talk.chat.asked[1].messages).at(-1), 'f');
  assert.equal(talk.chat.asked[1].messages.length, 2);
  truncate({ type: 'retention_ratio', retention_ratio: 2 });
  assert.match((await client.event('error', 2)).error.message, /truncation/);
});
