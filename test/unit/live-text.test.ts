/** What `voxgate live` prints into a terminal, into a pipe, and as events. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createJsonPrinter, createTextPrinter } from '../../src/cli/live-text.ts';

const PREFIX = 'conversation.item.input_audio_transcription';
const CLEAR = '\r\u001b[2K';
const delta = (delta: string, item_id = 'a') => ({ type: `${PREFIX}.delta`, item_id, delta });
const completed = (transcript: string, item_id = 'a') => ({
  type: `${PREFIX}.completed`,
  item_id,
  transcript,
});

const segment = (speaker: string, text: string, item_id = 'a') => ({
  type: `${PREFIX}.segment`,
  item_id,
  speaker,
  text,
});

function output(isTTY: boolean, columns = 80) {
  const written: string[] = [];
  const stream = { isTTY, columns, write: (text: string) => written.push(text) > 0 };
  return { written, stream: stream as unknown as NodeJS.WriteStream };
}

test('in a terminal the words so far are one line, which the final text replaces', () => {
  const { written, stream } = output(true);
  const print = createTextPrinter(stream, stream);
  print.event(delta('And so'));
  print.event(delta(' my fellow'));
  print.event(completed(' And so, my fellow Americans. '));
  print.end();
  const texts = ['And so', 'And so my fellow', 'And so, my fellow Americans.\n', ''];
  assert.deepEqual(
    written,
    texts.map((text) => CLEAR + text),
  );
});

test('the line is never wider than the terminal, whose width of a character may be two columns', () => {
  const { written, stream } = output(true, 8);
  const print = createTextPrinter(stream, stream);
  print.event(delta('one two three'));
  print.event(delta('今日はいい天気', 'b'));
  assert.deepEqual(written, [`${CLEAR}o three`, `${CLEAR}い天気`]);
});

test('where speakers are told apart, each segment is a line that begins with who says it', () => {
  const [pipe, terminal] = [output(false), output(true)];
  for (const { stream } of [pipe, terminal]) {
    const print = createTextPrinter(stream, stream);
    print.event(delta('Good'));
    print.event(segment('A', ' Good morning.'));
    print.event(segment('B', ' Thank\u0007you.\n'));
    print.event(completed('Good morning. Thank you.'));
    print.event(segment('A', 'It fails.', 'b'));
    print.event({ type: `${PREFIX}.failed`, item_id: 'b' });
    print.event(completed('Nobody knows who.', 'b'));
  }
  assert.equal(pipe.written.join(''), 'A: Good morning.\nB: Thank you.\nNobody knows who.\n');
  assert(terminal.written.includes(`${CLEAR}A: Good morning.\nB: Thank you.\n`));
});

test('what a terminal would obey is not printed', () => {
  const { written, stream } = output(true);
  const print = createTextPrinter(stream, stream);
  print.event(completed('a\u001b[2Jb\nc'));
  print.failure('no\u0007t');
  assert.deepEqual(written, [`${CLEAR}a [2Jb c\n`, CLEAR, 'voxgate: no t\n', CLEAR]);
});

test('a pipe gets final texts only, and failures go to standard error', () => {
  const [out, errors] = [output(false), output(false)];
  const print = createTextPrinter(out.stream, errors.stream);
  print.event(delta('one'));
  print.event(completed('One.'));
  print.event(completed(''));
  print.failure('The slot is busy');
  print.end();
  assert.equal(out.written.join(''), 'One.\n');
  assert.equal(errors.written.join(''), 'voxgate: The slot is busy\n');
});

test('events are JSON lines', () => {
  const [out, errors] = [output(true), output(true)];
  const print = createJsonPrinter(out.stream, errors.stream);
  print.event(delta('one'));
  print.failure('The slot is busy');
  print.end();
  assert.equal(out.written.join(''), `${JSON.stringify(delta('one'))}\n`);
  assert.equal(errors.written.join(''), 'voxgate: The slot is busy\n');
});
