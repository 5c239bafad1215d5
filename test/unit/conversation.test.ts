/** The parts of a conversation: what is remembered, what a daemon says, what is spoken of it, and what was heard. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { liveDecoder, liveEncoder, pcmDecoder } from '../../src/audio/live/encodings.ts';
import { History, type Item, type Message } from '../../src/conversation/items.ts';
import { Playback } from '../../src/conversation/playback.ts';
import { createSpokenText } from '../../src/conversation/spoken-text.ts';
import { type ChatEvent, chatBody, chatEvents } from '../../src/conversation/upstreams/chat-completions.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { chatUpstream } from '../../src/proxy/upstream.ts';

const daemon = chatUpstream({
  url: 'http://127.0.0.1:1',
  timeoutMs: 1,
  apiKey: undefined,
  isConfigured: true,
});
const limits = BUDGETS.conversation;

const message = (id: string, text: string): Message => ({
  kind: 'message',
  id,
  status: 'completed',
  role: 'user',
  parts: [{ kind: 'text', text }],
});

/** The events of an answer whose bytes come in pieces of this size. */
async function read(body: string, size = 7, type = 'text/event-stream'): Promise<ChatEvent[]> {
  const bytes = Buffer.from(body);
  async function* pieces() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  const events: ChatEvent[] = [];
  for await (const event of chatEvents({ headers: { 'content-type': type }, body: pieces() }, daemon, limits))
    events.push(event);
  return events;
}

const data = (...choices: object[]) =>
  choices.map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\r\n\r\n`).join('');
const textOf = (events: readonly ChatEvent[]) =>
  events.map((event) => (event.kind === 'text' ? event.text : '')).join('');

test('the oldest items are forgotten where there is no room', () => {
  const history = new History({ ...limits, items: 3, bytes: 10 });
  for (const id of ['a', 'b', 'c', 'd']) history.add(message(id, 'xx'));
  assert.deepEqual(
    history.items.map(({ id }) => id),
    ['b', 'c', 'd'],
  );
  history.add(message('long', 'x'.repeat(8)));
  assert.deepEqual(
    history.items.map(({ id }) => id),
    ['d', 'long'],
  );
  history.add(message('longer', 'x'.repeat(80)));
  assert.deepEqual(
    history.items.map(({ id }) => id),
    ['longer'],
  );
});

test('a session may keep a part, count tokens, or have nothing forgotten', () => {
  const ids = ({ items }: History) => items.map(({ id }) => id).join('');
  const history = new History({ ...limits, items: 10, bytes: 1000 });
  history.retention = { ratio: 0.5, tokens: 10 };
  for (const id of 'abcd') history.add(message(id, 'x'.repeat(10)));
  assert.equal(ids(history), 'abcd', '40 bytes are 10 tokens');
  history.add(message('e', 'é'.repeat(5)));
  assert.equal(ids(history), 'de', 'half of them stays');
  history.retention = null;
  for (const id of 'fghijklm') history.add(message(id, 'x'.repeat(10)));
  assert.equal(ids(history), 'defghijklm');
  assert.throws(() => history.requireRoom(), { code: 'conversation_full' });
  history.retention = { ratio: 0.3, tokens: null };
  history.requireRoom();
  history.forgetOldest();
  assert.equal(ids(history), 'defghijklm', 'ten may be there');
  history.add(message('n', ''));
  assert.equal(ids(history), 'lmn');
});

test('a call that was forgotten is still known as one, and only so many are', () => {
  const history = new History({ ...limits, items: 2 });
  for (const callId of ['1', '2', '3', '4', '5'])
    history.add({ kind: 'call', id: callId, callId, status: 'completed', name: 'f', arguments: '{}' });
  assert.deepEqual(
    ['1', '2', '3', '4', '5', '6'].map((callId) => history.hasCall(callId)),
    [false, true, true, true, true, false],
  );
  assert.equal(history.items.length, 2);
});

test('what daemons send is read: pieces, thoughts, whole calls, repeated ids, an index used again', async () => {
  const finish = { delta: {}, finish_reason: 'stop' };
  for (const size of [1, 7, 10_000]) {
    const thought = data(
      { delta: { content: '<think>a' } },
      { delta: { content: 'b</think>\n\nHi' } },
      finish,
    );
    assert.equal(textOf(await read(thought, size)), 'Hi');
  }
  assert.equal(textOf(await read(data({ delta: { content: '<th' } }, finish))), '<th');
  assert.equal(textOf(await read(data({ delta: { reasoning_content: 'Hm', content: null } }, finish))), '');
  const call = (index: number, id: string | undefined, name: string | undefined, args: unknown) => ({
    delta: { tool_calls: [{ index, ...(id !== undefined && { id }), function: { name, arguments: args } }] },
  });
  const calls = async (...choices: object[]) => {
    const all: string[] = [];
    for (const event of await read(data(...choices, finish))) {
      if (event.kind === 'call') all.push(`${event.id} ${event.name} `);
      if (event.kind === 'arguments') all[event.call] += event.text;
    }
    return all;
  };
  const two = ['x f {"a":1}', 'y g {}'];
  assert.deepEqual(
    await calls(call(0, 'x', 'f', '{"a"'), call(0, undefined, undefined, ':1}'), call(1, 'y', 'g', '{}')),
    two,
  );
  assert.deepEqual(await calls(call(0, 'x', 'f', { a: 1 }), call(0, 'y', 'g', '{}')), two);
  assert.deepEqual(
    await calls(call(0, 'x', 'f', '{"a"'), call(0, 'x', 'f', ':1}'), call(1, 'y', 'g', '{}')),
    two,
  );
  assert.deepEqual(
    await calls(
      call(0, 'x', 'f', '{"a"'),
      call(1, 'y', 'g', '{'),
      call(0, 'new', '', ':1}'),
      call(1, '', '', '}'),
    ),
    two,
    'in turn, with ids that change',
  );
  const whole = { choices: [{ message: { content: 'All at once.' }, finish_reason: 'stop' }] };
  assert.equal(textOf(await read(JSON.stringify(whole), 5, 'application/json')), 'All at once.');
});

test('an answer that is none is the fault of the daemon', async () => {
  for (const [body, why] of [
    ['data: {"choices"\n', /is not JSON/],
    ['data: {"error":{"message":"no memory"}}\n', /says: no memory/],
    [data({ delta: { content: 'I' } }), /broke off/],
    ['', /broke off/],
    [`data: ${'x'.repeat(limits.chatLineBytes)}`, /line that is too long/],
    [data({ delta: { tool_calls: [{ function: { arguments: '{}' } }] } }), /without a name/],
  ] as const)
    await assert.rejects(read(body, 65_536), { code: 'upstream_failed', message: why });
});

test('calls without a result and results without a call are not sent to the daemon', () => {
  const call = { kind: 'call', status: 'completed', name: 'f', arguments: '{}' } as const;
  const result = { kind: 'result', status: 'completed', output: '1' } as const;
  const items = [
    message('a', 'Hi'),
    { ...call, id: 'b', callId: '1' },
    { ...call, id: 'c', callId: '2' },
    { ...result, id: 'd', callId: '2' },
    { ...result, id: 'e', callId: '3' },
  ];
  const asked = { model: 'm', instructions: ' ', tools: [], toolChoice: 'auto', maxTokens: 5 } as const;
  interface Sent {
    role: string;
    tool_call_id?: string;
    tool_calls?: { id: string }[];
  }
  const body = chatBody({ ...asked, items }) as { messages: Sent[]; max_tokens: number };
  assert.deepEqual(
    body.messages.map((sent) => [sent.role, sent.tool_call_id ?? sent.tool_calls?.[0]?.id]),
    [
      ['user', undefined],
      ['assistant', '2'],
      ['tool', '2'],
    ],
  );
  assert.equal(body.max_tokens, 5);
});

test('the results of calls stand behind them, as the API wants, whoever spoke before they came', () => {
  const call = (callId: string) =>
    ({ kind: 'call', id: `c${callId}`, callId, status: 'completed', name: 'f', arguments: '{}' }) as const;
  const result = (callId: string) =>
    ({ kind: 'result', id: `r${callId}`, callId, status: 'completed', output: callId }) as const;
  const asked = { model: 'm', instructions: '', tools: [], toolChoice: 'auto', maxTokens: null } as const;
  const sent = (...items: Item[]) => {
    const { messages } = chatBody({ ...asked, items }) as {
      messages: { role: string; content: string; tool_calls?: { id: string }[] }[];
    };
    return messages.map(({ role, content, tool_calls: calls }) =>
      calls ? calls.map(({ id }) => `call ${id}`).join(' ') : `${role} ${content}`,
    );
  };
  const spoken = message('m', 'Well?');
  assert.deepEqual(sent(call('1'), call('2'), spoken, result('1'), result('2')), [
    ...['call 1 call 2', 'tool 1', 'tool 2'],
    'user Well?',
  ]);
  assert.deepEqual(sent(call('1'), result('1'), call('2'), result('2')), [
    ...['call 1', 'tool 1'],
    ...['call 2', 'tool 2'],
  ]);
  assert.deepEqual(sent(result('1'), call('1'), call('1'), spoken), ['call 1', 'tool 1', 'user Well?']);
});

test('a text is spoken as a person would say it, whatever pieces it comes in', () => {
  for (const [text, expected] of [
    ['One. Two! Three', ['One.', 'Two!', 'Three']],
    ['Use **bold** and *it*, `code`, snake_case and 2*3.', ['Use bold and it, code, snake_case and 2*3.']],
    ['See [the docs](https://x.y/z_(a)) now.', ['See the docs now.']],
    ['# Head\n\n- one\n- two\n', ['Head', 'one', 'two']],
    ['Before.\n```js\nlet x = 1;\n```\nAfter.', ['Before.', 'After.']],
    ['~~~\ncode\n', []],
    ['| a | b |\n|---|---|\n| 1 | 2 |\n', ['a, b', '1, 2']],
    ['Well 🙂 done. 👍', ['Well done.']],
    ['今天天气很好。我们走吧。', ['今天天气很好。', '我们走吧。']],
    ['**Bold. Still bold.** Plain.', ['Bold.', 'Still bold.', 'Plain.']],
  ] as const)
    for (const size of [1, 3, 1000]) {
      const spoken = createSpokenText();
      const said: string[] = [];
      for (let at = 0; at < text.length; at += size) said.push(...spoken.push(text.slice(at, at + size)));
      assert.deepEqual([...said, ...spoken.end()], expected, `${JSON.stringify(text)} by ${size}`);
    }
  const long = createSpokenText();
  const parts = long.push('word, '.repeat(200));
  assert(parts.length >= 3 && parts.every(({ length }) => length <= 300), `${parts.length}`);
});

test('what was heard of a message is the audio that was sent, up to the time', () => {
  let now = 0;
  const playback = new Playback(48, () => now);
  assert.deepEqual([playback.heardMs, playback.textUntil(100)], [0, '']);
  playback.begin('One two.');
  for (const bytes of [24_000, 24_000]) playback.add(bytes);
  playback.begin('Three four five six.');
  playback.add(96_000);
  now = 500;
  assert.deepEqual([playback.sentMs, playback.heardMs], [3000, 500]);
  assert.deepEqual(
    [0, 500, 1000, 2000, 9000].map((ms) => playback.textUntil(ms)),
    ['', 'One', 'One two.', 'One two. Three four', 'One two. Three four five six.'],
  );
  now = 5000;
  assert.equal(playback.heardMs, 3000);
});

test('a sentence that was said twice was heard once or twice', () => {
  const playback = new Playback(48);
  for (const text of ['Go on now.', 'Go on now.', 'Go on now.', 'Stop.']) {
    playback.begin(text);
    playback.add(48_000);
  }
  assert.deepEqual(
    [1000, 2500, 4000].map((ms) => playback.textUntil(ms)),
    ['Go on now.', 'Go on now. Go on now. Go on', 'Go on now. Go on now. Go on now. Stop.'],
  );
});

test('audio is encoded as it is decoded, and brought to the rate of the session', () => {
  const sine = (rate: number) =>
    Float32Array.from({ length: rate / 10 }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / rate));
  const expected = sine(16_000);
  for (const [encoding, rate, most] of [
    ['pcm16', 16_000, 1e-4],
    ['mulaw', 8000, 0.02],
    ['alaw', 8000, 0.02],
  ] as const) {
    const { take } = liveDecoder({ encoding, rate });
    const back = take(liveEncoder({ encoding, rate })(sine(rate)));
    assert(back.length > 1400, encoding);
    for (const [i, sample] of back.entries()) {
      const off = Math.abs(sample - (expected[i] ?? 9));
      if (i > 100) assert(off < most, `${encoding}: ${off} at ${i}`);
    }
  }
  const decoder = pcmDecoder({ rate: 22_050, width: 2, channels: 1 }, 24_000);
  const second = Buffer.alloc(2 * 22_050);
  const count = decoder.take(second).length + decoder.end().length;
  assert(Math.abs(count - 24_000) < 30, `${count}`);
});
