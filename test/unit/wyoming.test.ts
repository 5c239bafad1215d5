/** Messages of Wyoming are read however they are cut, and nothing else is taken for one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { splitSentences } from '../../src/conversation/sentence-stream.ts';
import { GatewayError } from '../../src/errors.ts';
import { createMessageReader, type Part, writeMessage } from '../../src/live/wyoming/messages.ts';
import { parseFormat, parseTranscribe } from '../../src/live/wyoming/requests.ts';
import { until } from '../until.ts';

const LIMITS = { lineBytes: 2000, dataBytes: 2000, values: 1000, payloadBytes: 2000 };

interface Sent {
  type: string;
  inline: Record<string, unknown>;
  after: Record<string, unknown>;
  payload: Uint8Array;
}

const members = fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 4 });
const sent: fc.Arbitrary<Sent> = fc.record({
  type: fc.constantFrom('describe', 'audio-chunk', 'transcribe', 'ping', 'x'),
  inline: members,
  after: members,
  payload: fc.uint8Array({ maxLength: 300 }),
});

function bytesOf({ type, inline, after, payload }: Sent): Buffer {
  const body = Buffer.from(Object.keys(after).length > 0 ? JSON.stringify(after) : '');
  const line = { type, data: inline, data_length: body.length, payload_length: payload.length };
  return Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), body, payload]);
}

/** Cuts the bytes at these places. */
function pieces(bytes: Buffer, cuts: number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end));
}

/** The messages in the parts, with their whole payloads. */
function joined(parts: Part[]) {
  const messages: { type: string; data: unknown; payload: Buffer }[] = [];
  for (const { type, data, payload, isFirst } of parts) {
    if (isFirst) messages.push({ type, data, payload });
    else
      Object.assign(messages.at(-1) ?? {}, {
        payload: Buffer.concat([messages.at(-1)?.payload ?? payload, payload]),
      });
  }
  return messages;
}

setFlagsFromString('--expose-gc');
const gc: () => void = runInNewContext('gc');

/** The memory that is in use. */
function heldBytes(): number {
  gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('messages are the same however their bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(sent, { maxLength: 5 }), fc.array(fc.nat(), { maxLength: 40 }), (messages, cuts) => {
      const reader = createMessageReader({ lineBytes: 1e6, dataBytes: 1e6, values: 1e6, payloadBytes: 1e6 });
      const bytes = Buffer.concat(messages.map(bytesOf));
      const parts = pieces(bytes, cuts).flatMap((piece) => [...reader.push(piece)]);
      const expected = messages.map(({ type, inline, after, payload }) => ({
        type,
        data: JSON.parse(JSON.stringify({ ...inline, ...after })),
        payload: Buffer.from(payload),
      }));
      assert.deepEqual(joined(parts), expected);
      assert.equal(reader.isWithin, false);
    }),
  );
});

test('whatever comes is a message or a refusal, and never anything else', () => {
  const type = fc.oneof(fc.constant('ping'), fc.string(), fc.anything());
  const length = fc.oneof(fc.nat(40), fc.anything());
  const fields = {
    type,
    data: fc.oneof(fc.object(), fc.anything()),
    data_length: length,
    payload_length: length,
  };
  const line = fc.oneof(
    fc.json(),
    fc.string(),
    fc.record(fields, { requiredKeys: ['type'] }).map((value) => JSON.stringify(value)),
  );
  const garbage = fc.oneof(
    fc.uint8Array({ maxLength: 500 }).map((bytes) => Buffer.from(bytes)),
    fc.array(line, { maxLength: 6 }).map((lines) => Buffer.from(`${lines.join('\n')}\n`)),
  );
  let [read, refused] = [0, 0];
  fc.assert(
    fc.property(garbage, fc.array(fc.nat(), { maxLength: 10 }), (bytes, cuts) => {
      const reader = createMessageReader(LIMITS);
      try {
        for (const piece of pieces(bytes, cuts))
          for (const part of reader.push(piece)) {
            assert.equal(typeof part.type, 'string');
            assert(typeof part.data === 'object' && part.data !== null && !Array.isArray(part.data));
            read += 1;
          }
      } catch (error) {
        assert(error instanceof GatewayError && error.code === 'invalid_message', String(error));
        refused += 1;
      }
    }),
    { numRuns: 1000 },
  );
  assert(read > 0 && refused > 0, `${read} parts, ${refused} refusals`);
});

test('a long list of wrong items is one refusal, and soon there', () => {
  const begin = performance.now();
  assert.throws(() => parseTranscribe({ transcript_terms: Array(130_000).fill(1) }), {
    code: 'invalid_value',
    param: 'transcript_terms',
  });
  assert.ok(performance.now() - begin < 150, `${performance.now() - begin} ms`);
});

test('what fields hold is what can be heard, or a refusal that names the field', () => {
  const refusal = (error: unknown) =>
    assert(error instanceof GatewayError && error.code === 'invalid_value' && error.param, String(error));
  const keys = ['rate', 'width', 'channels', 'name', 'language', 'transcript_names', 'transcript_terms'];
  const data = fc.dictionary(fc.constantFrom(...keys), fc.jsonValue({ maxDepth: 2 }));
  fc.assert(
    fc.property(data, (fields) => {
      try {
        const { rate, width, channels } = parseFormat(fields);
        assert([rate, width, channels].every((value) => Number.isInteger(value) && value > 0));
      } catch (error) {
        refusal(error);
      }
      try {
        assert(parseTranscribe(fields).keywords.length <= 100);
      } catch (error) {
        refusal(error);
      }
    }),
  );
});

test('a limit is reached and not passed', () => {
  const line = (length: number) => Buffer.from(`{"type":"ping","data":{"x":"${'y'.repeat(length - 32)}"}}\n`);
  assert.equal(line(2000).length, 2000);
  assert.equal([...createMessageReader(LIMITS).push(line(2000))].length, 1);
  for (const bytes of [
    line(2001),
    Buffer.alloc(2001, 0x20), // no line ends here
    Buffer.from('{"type":"ping","data_length":2001}\n'),
    Buffer.from('{"type":"ping","payload_length":2001}\n'),
  ])
    assert.throws(() => [...createMessageReader(LIMITS).push(bytes)], { code: 'invalid_message' });
});

test('a payload is handed on as it comes, and a byte at a time takes no more memory than its bytes', async () => {
  const reader = createMessageReader({ ...LIMITS, lineBytes: 1e6, payloadBytes: 1e9 });
  assert.equal(
    [...reader.push(Buffer.from('{"type":"audio-chunk","payload_length":1000000000}\n'))].length,
    1,
  );
  for (let i = 0; i < 3; i += 1) {
    const [part] = [...reader.push(Buffer.alloc(1000, i))];
    assert.deepEqual([part?.isFirst, part?.payload.length, part?.payload[0]], [false, 1000, i]);
  }
  assert.equal(reader.isWithin, true);
  const slow = createMessageReader({ ...LIMITS, lineBytes: 1e6 });
  const before = heldBytes();
  for (let i = 0; i < 300_000; i += 1) [...slow.push(Buffer.alloc(1, ' '))];
  // What is freed is swept beside the program, which may be a little later.
  await until('a line of 300 kB holds less than 15 MB', () => heldBytes() - before < 15_000_000);
  assert(slow.isWithin);
});

test('what is written is read again, with its data after the line', () => {
  const bytes = writeMessage('transcript', { text: 'Grüße\n' });
  const [part] = [...createMessageReader(LIMITS).push(bytes)];
  assert.deepEqual([part?.type, part?.data], ['transcript', { text: 'Grüße\n' }]);
  const [line = ''] = bytes.toString().split('\n', 1);
  assert.deepEqual(JSON.parse(line), { type: 'transcript', version: '1.10.2', data_length: 20 });
});

test('a text that comes in pieces is cut where a sentence ends and the next one has begun', () => {
  for (const [text, sentences, rest] of [
    ['One. Two', ['One. '], 'Two'],
    ['Dr. Smith is 3.5 m', [], 'Dr. Smith is 3.5 m'],
    ['Wait! Really? Yes', ['Wait! ', 'Really? '], 'Yes'],
    ['No end yet.', [], 'No end yet.'],
    ['A line\nand another', ['A line\n'], 'and another'],
    ['今日は。明日', ['今日は。'], '明日'],
    ['', [], ''],
  ] as const)
    assert.deepEqual(splitSentences(text), { sentences: [...sentences], rest }, text);
});
