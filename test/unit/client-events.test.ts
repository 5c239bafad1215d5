/** These tests say how the events of live clients are read where they are long: only audio may be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { receivedEvent } from '../../src/live/realtime/client-events.ts';

const LIMIT = 256 * 1024;
const LIMITS = { eventBytes: LIMIT, eventValues: 8192 };
let turns = 0;
const turn = async () => {
  turns += 1;
};
const read = async (text: string) => {
  const event = receivedEvent(Buffer.from(text), LIMITS);
  return { id: event.id, ...(await event.read(turn)) };
};
const bytes = Buffer.from(Uint8Array.from({ length: 300_001 }, (_, i) => (i * 7919) >> 3));
const audio = bytes.toString('base64');

test('audio of any length is read, wherever it stands in its event and however its slashes are written', async () => {
  for (const text of [
    JSON.stringify({ type: 'input_audio_buffer.append', event_id: 'e1', audio }),
    JSON.stringify({ audio, event_id: 'e1', type: 'input_audio_buffer.append' }),
    `{ "event_id": "e1", "audio" :\n"${audio.replaceAll('/', '\\/')}", "type": "input_audio_buffer.append" }`,
  ]) {
    turns = 0;
    const event = await read(text);
    assert.equal(event.id, 'e1');
    assert.ok(event.type === 'append' && event.audio.equals(bytes), text.slice(0, 50));
    assert.ok(turns >= audio.length / (64 * 1024), `${turns} turns`);
  }
});

test('what is long besides audio is refused, and says so', async () => {
  const long = 'x'.repeat(LIMIT + 1);
  for (const text of [
    JSON.stringify({
      type: 'session.update',
      session: { audio: { input: { transcription: { prompt: long } } } },
    }),
    JSON.stringify({ type: 'session.update', session: {}, audio }),
    JSON.stringify({ type: 'input_audio_buffer.commit', audio }),
    JSON.stringify({ type: 'input_audio_buffer.append', audio, event_id: long }),
    `{"type":"input_audio_buffer.append","audio":["${long}"]}`,
    `{"type":"input_audio_buffer.append","audio":"${long}`,
    long,
  ])
    await assert.rejects(read(text), (thrown) => {
      assert.ok(thrown instanceof GatewayError);
      assert.equal(thrown.code, 'invalid_value');
      assert.match(thrown.message, /at most 262144 bytes besides audio/);
      return true;
    });
});

test('an event of many values is refused before any of them is read', async () => {
  const update = (session: string) => `{"type":"session.update","session":${session}}`;
  for (const session of [
    `{"include":[${'1,'.repeat(120_000)}1]}`,
    `{"audio":{"input":{"transcription":{"languages":[${'"e",'.repeat(60_000)}"e"]}}}}`,
    `{${Array.from({ length: 20_000 }, (_, i) => `"a${i}":1`)}}`,
    `${'['.repeat(120_000)}${']'.repeat(120_000)}`,
    `${'{"a":'.repeat(40_000)}1${'}'.repeat(40_000)}`,
  ])
    await assert.rejects(read(update(session)), (thrown) => {
      assert.ok(thrown instanceof GatewayError);
      assert.match(thrown.message, /at most 8192 values/, session.slice(0, 50));
      return true;
    });
  const keywords = Array.from({ length: 100 }, (_, i) => `word ${i}`);
  const prompt = 'One, two, and so on. '.repeat(3000);
  const event = await read(
    update(JSON.stringify({ audio: { input: { transcription: { keywords, prompt } } } })),
  );
  assert.equal(event.type, 'update');
});

test('long audio that is no base64 is refused by its field, wherever it is wrong', async () => {
  for (const wrong of [
    `!${audio}`,
    `${audio}!`,
    `${audio.slice(0, 100_000)}=${audio.slice(100_000)}`,
    `${audio}\\n`,
  ])
    await assert.rejects(
      read(`{"type":"input_audio_buffer.append","event_id":"e2","audio":"${wrong}"}`),
      (thrown) => {
        assert.ok(thrown instanceof GatewayError);
        assert.equal(thrown.param, 'audio');
        return true;
      },
    );
});
