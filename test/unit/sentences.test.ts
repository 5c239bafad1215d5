/** Words become sentences, which end at marks, pauses and limits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Word } from '../../src/transcription/segment.ts';
import { endsClause, endsSentence, toSentences } from '../../src/transcription/text/sentences.ts';

function wordsOf(text: string, gapSec = 0): Word[] {
  return text.split(' ').map((w, i) => {
    const start = i * (0.3 + gapSec);
    return { text: ` ${w}`, start, end: start + 0.3, tokens: [] };
  });
}

const split = (text: string) =>
  toSentences(wordsOf(text)).map((s) =>
    s
      .map((w) => w.text)
      .join('')
      .trim(),
  );

for (const [text, expected] of [
  ['One two. Three four? Five!', ['One two.', 'Three four?', 'Five!']],
  ['He said "stop." Then left.', ['He said "stop."', 'Then left.']],
  ['Dr. Smith met Mr. J. Doe.', ['Dr. Smith met Mr. J. Doe.']],
  ['It was I. Then he.', ['It was I.', 'Then he.']],
  ['Costs 3.50 dollars. Yes.', ['Costs 3.50 dollars.', 'Yes.']],
  ['At 5 p.m. we left. At 5 p.m. We left.', ['At 5 p.m. we left.', 'At 5 p.m.', 'We left.']],
  ['No. I said no. Go', ['No.', 'I said no.', 'Go']],
  ['你好。 再见！', ['你好。', '再见！']],
  ['no mark at all', ['no mark at all']],
  ['Er sagte „Halt!“ Dann ging er.', ['Er sagte „Halt!“', 'Dann ging er.']],
  [
    '“Stop!” he said. Well… perhaps. Well… Perhaps.',
    ['“Stop!” he said.', 'Well… perhaps.', 'Well…', 'Perhaps.'],
  ],
  ['Es gibt z.B. Autos. Am 3. Mai, der 2. gesetzte.', ['Es gibt z.B. Autos.', 'Am 3. Mai, der 2. gesetzte.']],
  ['It was 1999. Then came 3. And so on.', ['It was 1999.', 'Then came 3.', 'And so on.']],
  ['It was 1999. then came the 4. of all.', ['It was 1999.', 'then came the 4. of all.']],
  ['Señor J.R.R. Tolkien y el Sr. García.', ['Señor J.R.R. Tolkien y el Sr. García.']],
  [
    'Tak np. Kraków (tj. Stare Miasto) itd. Potem nic.',
    ['Tak np. Kraków (tj. Stare Miasto) itd.', 'Potem nic.'],
  ],
  ['¿Qué? ¡Nada! Vale.', ['¿Qué?', '¡Nada!', 'Vale.']],
  ['नमस्ते। आप कैसे हैं? ठीक॥ अच्छा।', ['नमस्ते।', 'आप कैसे हैं?', 'ठीक॥', 'अच्छा।']],
  ['كيف حالك؟ بخير۔ شكرا.', ['كيف حالك؟', 'بخير۔', 'شكرا.']],
  ['ሰላም። እንዴት፧ Այո։ សួស្តី។ はい｡ いや．', ['ሰላም።', 'እንዴት፧', 'Այո։', 'សួស្តី។', 'はい｡', 'いや．']],
  ['ဟုတ်၊ ကဲ။ ဟုတ်။', ['ဟုတ်၊ ကဲ။', 'ဟုတ်။']],
  ['네. 알겠습니다. 好. 再见.', ['네.', '알겠습니다.', '好.', '再见.']],
  ['Это я. Потом он. Это А. Блок.', ['Это я.', 'Потом он.', 'Это А. Блок.']],
  ['Es gibt z. B. Autos um 5 a. m. oder so.', ['Es gibt z. B. Autos um 5 a. m. oder so.']],
  ['Er sagte: Halt! ” Dann ging er.', ['Er sagte: Halt! ”', 'Dann ging er.']],
  ['A Ph.D. student. Then', ['A Ph.D. student.', 'Then']],
] as const) {
  test(`sentences of: ${text}`, () => assert.deepEqual(split(text), expected));
}

test('a number that is spelled in two words is one', () => {
  const words = wordsOf('It costs 3. euros');
  const [it, costs, three] = words;
  assert(it && costs && three);
  const five = { ...three, text: '5', start: 0.9, end: 1.2 };
  assert.equal(toSentences([it, costs, three, five]).length, 1);
});

test('without pauses a run-on sentence is cut at its last comma within the cap, else at the cap', () => {
  const text = Array.from({ length: 150 }, (_, i) => (i === 40 || i === 80 ? 'word,' : 'word')).join(' ');
  assert.deepEqual(
    toSentences(wordsOf(text)).map((s) => s.length),
    [81, 69],
  );
  assert.equal(toSentences(wordsOf(Array(150).fill('word').join(' ')))[0]?.length, 100);
});

test('a sentence of French ends behind the space and the quote', () => {
  const words = wordsOf('x y z').map((word, i) => ({
    ...word,
    text: [' « Arrête ! »', ' Dit', '-il.'][i] ?? '',
  }));
  assert.deepEqual(
    toSentences(words).map((s) => s.length),
    [1, 2],
  );
});

test('a comma of any script is a place to cut', () => {
  for (const mark of ',;:،؛፣、､，：၊') assert(endsClause({ text: ` x${mark}` }), mark);
});

test('a sentence is cut at its long pauses, behind which it may go on', () => {
  assert.equal(toSentences(wordsOf('one two three', 2)).length, 3);
});

test('a letter with a full stop may be an initial, but not where a long pause follows', () => {
  const ends = (text: string, pauseSec: number) => {
    const [word, next] = wordsOf(text, pauseSec).slice(-2);
    assert(word && next);
    return endsSentence(word, next);
  };
  assert.deepEqual([ends('B. Then', 0), ends('B. Then', 2)], [false, true]);
  for (const text of ['Dr. Smith', 'Well… perhaps', 'etc. and', 'z. B.', '3. Mai'])
    assert.deepEqual([ends(text, 0), ends(text, 2)], [false, false], text);
});

test('a run-on sentence is cut at its widest pause within the cap', () => {
  const words = wordsOf(Array(150).fill('word').join(' '));
  const pause = words[60];
  assert(pause);
  for (const later of words.slice(60)) {
    later.start += 1;
    later.end += 1;
  }
  assert.equal(toSentences(words)[0]?.length, 60);
});

test('every word is kept, in order, once, and no sentence of several words is longer than 30 s', () => {
  const word = fc.record({
    text: fc.constantFrom(' a', ' b.', ' Mr.', ' c,', ' d?', '。', ' e'),
    gap: fc.double({ min: 0, max: 3, noNaN: true }),
    length: fc.double({ min: 0, max: 5, noNaN: true }),
  });
  fc.assert(
    fc.property(fc.array(word, { maxLength: 80 }), (shapes) => {
      let clock = 0;
      const words = shapes.map(({ text, gap, length }): Word => {
        const start = clock + gap;
        clock = start + length;
        return { text, start, end: clock, tokens: [] };
      });
      const sentences = toSentences(words);
      assert.deepEqual(sentences.flat(), words);
      for (const s of sentences) {
        const [first, last] = [s[0], s.at(-1)];
        assert(first && last);
        assert(s.length === 1 || last.end - first.start <= 30 + 1e-9);
      }
    }),
  );
});

test('a long sentence is cut at the same words wherever in the audio it is', () => {
  const words = wordsOf(Array(150).fill('word').join(' '));
  const later = words.map((word) => ({ ...word, start: word.start + 600, end: word.end + 600 }));
  const lengths = (list: Word[]) => toSentences(list).map((sentence) => sentence.length);
  assert.deepEqual(lengths(words), [100, 50]);
  assert.deepEqual(lengths(later), lengths(words));
});
