/** Descriptions of sounds in what Whisper writes: which of them go, what of the speech around them stays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Word } from '../../src/transcription/segment.ts';
import { withoutAnnotations } from '../../src/transcription/whisper/annotations.ts';

/** Words as they are spelled from tokens: each with its leading space, 0.5 s long. */
const wordsOf = (text: string): Word[] =>
  (text.match(/\s*\S+/g) ?? []).map((word, i) => ({
    text: word,
    start: i / 2,
    end: (i + 1) / 2,
    tokens: [{ id: i, bytes: Buffer.from(word), logprob: -0.1 }],
  }));

const textOf = (words: Word[]) => words.map((word) => word.text).join('');
const left = (text: string, prompt = '') => textOf(withoutAnnotations(wordsOf(text), prompt));

for (const text of [
  ' (crickets chirping)',
  ' (upbeat music) (upbeat music)',
  ' [Music]',
  ' [BLANK_AUDIO]',
  ' [ Silence ]',
  ' [Music',
  ' (eerie tune',
  ' *sighs*',
  ' * Musik *',
  ' [музыка] (смех)',
  ' ♪',
  ' ♪ ♪ ♪♪',
  ' ♪ ... ♪',
  ' ♪ (upbeat music) ♪',
  ' (speaking in foreign language)',
  '【音楽】',
  '（拍手）',
  ' ((laughs))',
  ' - [Man]',
  ' ...',
  ' . . .',
]) {
  test(`no speech: ${text.trim()}`, () => assert.deepEqual(withoutAnnotations(wordsOf(text), ''), []));
}

for (const [text, expected] of [
  [' Thank you. (applause) And now the news.', ' Thank you. And now the news.'],
  [' (eerie tune) It was late.', ' It was late.'],
  [' It was late. (eerie tune)', ' It was late.'],
  [' I said (laughs) that it works.', ' I said that it works.'],
  [' He left (laughs).', ' He left.'],
  [' He left. [door slams]. Then nothing.', ' He left. Then nothing.'],
  [' [MAN] Hey there! [ Music ]', ' Hey there!'],
  [' - [Man] Hey there!', ' - Hey there!'],
  [' Well, *sighs* I do not know.', ' Well, I do not know.'],
  [' Na ja, * lacht * also gut.', ' Na ja, also gut.'],
  [' ♪ We will rock you ♪', ' We will rock you'],
  [' (lacht)Ja, genau.', ' Ja, genau.'],
  ['你好。（笑声）再见。', '你好。再见。'],
  [' नमस्ते। (door slams) ठीक।', ' नमस्ते। ठीक।'],
  [' Ja (Musik) oui (musique) yes (laughter, cheers).', ' Ja oui yes.'],
] as const) {
  test(`of: ${text.trim()}`, () => assert.equal(left(text), expected));
}

for (const text of [
  ' The World Health Organization (WHO) said so.',
  ' It rained (as it does here) all day.',
  ' It rained. (It always does.) We left.',
  ' (which I doubt) and so on.',
  ' We saw the queen (Elizabeth).',
  ' (12) Angry Men.',
  ' Five * three * two is thirty.',
  ' What the f*** is a[0] or x*y*z?',
  ' He said f*ck and sh*t.',
  ' See [1] and [2, 3], or a[0] = [1].',
  ' (A) Paris (B) London',
  ' Die (Musikschule Köln) ist gut, sagt er (sobre todo), at (sight).',
  ' C# in B♭ minor is 50% off.',
  ' 7.',
  ' (555) 123-4567',
  ` It is (${'very '.repeat(30)}long)`,
]) {
  test(`speech stays as it is: ${text.trim().slice(0, 50)}`, () => assert.equal(left(text), text));
}

test('marks that the prompt has are asked for, and no others', () => {
  const text = ' (crickets chirping) [Music] *sighs* ♪ Hello. ♪';
  assert.equal(left(text), ' Hello.');
  assert.equal(left(text, 'A meeting (with noises).'), ' (crickets chirping) Hello.');
  assert.equal(left(text, 'Sounds are written as [laughs].'), ' [Music] Hello.');
  assert.equal(left(text, '*coughs*'), ' *sighs* Hello.');
  assert.equal(left(text, '♪ La la ♪'), ' ♪ Hello. ♪');
  assert.equal(left(text, '( [ * ♪'), text);
});

test('the words that stay keep their times and tokens, what goes takes its own along', () => {
  const words = wordsOf(' I said (laughs) that, (laughs). So');
  const [i, said, , that, , so] = words;
  assert.deepEqual(withoutAnnotations(words, ''), [i, said, { ...that, text: ' that,' }, so]);
  assert.deepEqual(withoutAnnotations(wordsOf(' He left (laughs).'), '').at(-1), {
    ...wordsOf(' He left (laughs).')[1],
    text: ' left.',
  });
});

test('without marks nothing is touched; with them no word is made up, moved or doubled', () => {
  const piece = fc.constantFrom(
    ...[' a', ' B.', ' (', ')', ' [x', ']', ' *', '*', ' ♪', ' (laughs)', 'c', ' [Music]', '（', '）', '。'],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const words = pieces.map(
        (text, i): Word => ({
          text,
          start: i,
          end: i + 1,
          tokens: [{ id: i, bytes: Buffer.from(text), logprob: 0 }],
        }),
      );
      const kept = withoutAnnotations(words, '');
      const letters = (text: string) => [...text.replace(/[^\p{L}\p{N}]/gu, '')];
      let at = 0;
      for (const word of kept) {
        at = words.findIndex(({ tokens }, i) => i >= at && tokens[0]?.id === word.tokens[0]?.id);
        assert(at >= 0, 'in the order in which they were');
        assert.deepEqual([word.start, word.end], [words[at]?.start, words[at]?.end]);
        const own = letters(words[at]?.text ?? '');
        assert(letters(word.text).every((letter) => own.includes(letter)));
        at += 1;
      }
      const marked = /[()[\]*♪（）]/.test(textOf(words));
      if (!marked && /[\p{L}\p{N}]/u.test(textOf(words))) assert.deepEqual(kept, words);
    }),
    { numRuns: 500 },
  );
});
