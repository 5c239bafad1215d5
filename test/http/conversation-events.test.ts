/** Every event that the package of OpenAI knows is in the document, and is served as it says there. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { heard } from './harness.ts';
import { COMPLETED, FAILED } from './realtime.ts';
import { chunk, DONE, say, says, startTalk, talkTo, USAGE, write } from './talk.ts';

const document = readFileSync('docs/conversations.md', 'utf8');
const packageTypes = readFileSync('node_modules/openai/resources/realtime/realtime.d.ts', 'utf8');

/** The `type` of each member of a union of events, as the installed package of OpenAI knows it. */
function namesOf(union: 'RealtimeClientEvent' | 'RealtimeServerEvent'): string[] {
  const head = `export type ${union} = `;
  const at = packageTypes.indexOf(head) + head.length;
  const members = packageTypes.slice(at, packageTypes.indexOf(';', at)).split(' | ');
  return members.map((member) => {
    const name = member.split('.').at(-1) ?? member;
    const begin = packageTypes.indexOf(`interface ${name} {`);
    // Members of a nested object are further in than those of the event.
    const found = /^( {4}| {8})type: '([^']+)'/m.exec(packageTypes.slice(begin));
    if (begin < 0 || !found?.[2]) throw new Error(`${member} has no type`);
    return found[2];
  });
}

/** The events in the first column of a section, and what it says of them. */
function documented(section: string): Map<string, string> {
  const [text = ''] = document.split(`\n## ${section}\n`)[1]?.split('\n## ') ?? [];
  const [table = ''] = text.split('\n\n').filter((part) => part.trimStart().startsWith('|'));
  const rows = table.split('\n').map((row) => row.split(' | '));
  return new Map(
    rows.flatMap(([events = '', says = '']) =>
      [...events.matchAll(/`([^`]+)`/g)].map(([, name = '']) => [name, says] as const),
    ),
  );
}

const clientEvents = documented('Client events');
const serverEvents = documented('Server events');
/** Those are tested where speakers are told apart, and where a client speaks the beta. */
const ELSEWHERE = ['conversation.item.input_audio_transcription.segment', 'conversation.item.created'];

test('the tables have the events of the package, and no others', () => {
  assert.deepEqual([...clientEvents.keys()].sort(), namesOf('RealtimeClientEvent').sort());
  assert.deepEqual([...serverEvents.keys()].sort(), namesOf('RealtimeServerEvent').sort());
});

test('every event of a client is read, or answered with the error that the table names', async () => {
  await using talk = await startTalk();
  await using client = await talkTo(talk);
  for (const type of clientEvents.keys()) client.send({ type, event_id: type });
  client.send({ type: 'last', event_id: 'last' });
  const refused = () =>
    client.events.flatMap(({ error }) => (error?.code === 'unknown_event' ? [error.event_id] : []));
  for (let nth = 1; !refused().includes('last'); nth += 1) await client.event('error', nth);
  const expected = [...clientEvents]
    .filter(([, says]) => says.includes('unknown_event'))
    .map(([name]) => name);
  assert.deepEqual(refused(), [...expected, 'last']);
});

test('every event of the server is sent that the table says is sent', async () => {
  let isFailing = false;
  await using talk = await startTalk({
    async transcribe() {
      if (isFailing) throw new Error('scripted');
      return heard(' Hello.');
    },
  });
  const tools = [{ type: 'function', name: 'clock', parameters: { type: 'object' } }];
  const detection = { type: 'server_vad', create_response: false, idle_timeout_ms: 50 };
  const transcription = { model: 'whisper-1', delay: 'xhigh' };
  await using client = await talkTo(talk, {
    tools,
    audio: { input: { transcription, turn_detection: detection } },
  });
  say(client);
  await client.event(COMPLETED);
  isFailing = true;
  say(client);
  await client.event(FAILED);
  client.send({ type: 'response.create' });
  const { response } = await client.event('response.done');
  const [{ id }] = response.output;
  await client.event('input_audio_buffer.timeout_triggered');
  await client.event('response.done', 2);
  client.send({ type: 'conversation.item.truncate', item_id: id, content_index: 0, audio_end_ms: 10 });
  for (const name of ['retrieve', 'delete', 'delete'])
    client.send({ type: `conversation.item.${name}`, item_id: id });
  client.send({ type: 'input_audio_buffer.clear' });
  await client.event('error');
  write(client, 'In writing');
  talk.chat.answer(says('Yes.'));
  client.send({ type: 'response.create', response: { output_modalities: ['text'] } });
  await client.event('response.done', 3);
  talk.chat.answer((res) => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'clock', arguments: '{}' } };
    res.end(chunk({ tool_calls: [call] }) + chunk({}, 'tool_calls') + USAGE + DONE);
  });
  client.send({ type: 'response.create' });
  await client.event('response.done', 4);
  await client.event('input_audio_buffer.cleared');
  await client.event('rate_limits.updated', 4);
  const sent = [...serverEvents].filter(([, says]) => !says.startsWith('never')).map(([name]) => name);
  const seen = new Set(client.events.map(({ type }) => type));
  assert.deepEqual([...seen].sort(), sent.filter((name) => !ELSEWHERE.includes(name)).sort());
});
