/** The Morse family: what becomes of its letters. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinLetters } from '../../src/transcription/morse/recognizer.ts';

test('a letter with a space begins a word, and times count from the start of the audio', () => {
  const letters = [
    { text: ' A', startMs: 0, endMs: 300 },
    { text: 'B', startMs: 500, endMs: 900 },
    { text: ' C', startMs: 1500, endMs: 1900 },
  ];
  const tokens = letters.map((letter, id) => ({
    ...letter,
    id,
    bytes: Buffer.from(letter.text),
    logprob: 0,
  }));
  const words = joinLetters([{ startMs: 0, endMs: 1900, tokens, noSpeechProb: 0 }], { startSec: 10 });
  assert.deepEqual(
    words.map(({ text, start, end }) => [text, start, end]),
    [
      [' AB', 10, 10.9],
      [' C', 11.5, 11.9],
    ],
  );
});
