/** The page cuts subtitles itself, and does it as the gateway does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Segment, Word } from '../../src/transcription/segment.ts';
import { toCues, toSrt, toVtt } from '../../src/wire/cues.ts';

interface Said {
  start: number;
  end: number;
  text: string;
  speaker?: string | undefined;
}

/** The page's own module, which has no types. */
const CUES = new URL('../../assets/playground/cues.js', import.meta.url).href;
const page: {
  toCues(segments: Said[], words: (Said | { word: string })[] | undefined, durationSec: number): Said[];
  toSrt(cues: Said[]): string;
  toVtt(cues: Said[]): string;
} = await import(CUES);

const PIECES =
  `and but because, Dr. Smith said: "Stop!" z. B. am 3. Mai U.S. etc. one two… three A. Well, he(she) (yes)
  Straße Привет, мир. — --> a-->b ---> <i> & I. 12. 2024. longerwordsthanusual! naïve café कमाल」 e.g. nine
  長い日本語の文章です。 한국어 🎉🎉 onewordthatislongerthanawholelineofasubtitle,andthensome`.split(/\s+/);

const segments = fc.array(
  fc.record({
    speaker: fc.constantFrom('A', 'B'),
    words: fc.array(
      fc.record({
        text: fc.constantFrom(...PIECES),
        gapMs: fc.constantFrom(0, 0, 0, 20, 290, 300, 310, 900, 1500, 1510, 4000),
        ms: fc.integer({ min: 0, max: 2500 }),
      }),
      { minLength: 1, maxLength: 30 },
    ),
  }),
  { minLength: 1, maxLength: 6 },
);

test('the subtitles of the page are the gateway’s own, for any words, pauses and speakers', () => {
  fc.assert(
    fc.property(segments, fc.boolean(), (list, withSpeakers) => {
      let ms = 0;
      const said = list.map(({ speaker, words }) => {
        const timed = words.map(({ text, gapMs, ms: length }) => {
          const start = ms + gapMs;
          ms = start + length;
          const word: Word = { text: ` ${text}`, start: start / 1000, end: ms / 1000, tokens: [] };
          return withSpeakers ? { ...word, speaker } : word;
        });
        return {
          start: timed[0]?.start ?? 0,
          end: ms / 1000,
          text: timed.map(({ text }) => text).join(''),
          words: timed,
          ...(withSpeakers && { speaker }),
        };
      });
      const durationSec = ms / 1000 + 0.5;
      const ours = toCues(said as unknown as Segment[], 'subtitle', durationSec);
      const wireWords = said.flatMap(({ words }) =>
        words.map(({ text, start, end }) => ({ word: text.trim(), start, end })),
      );
      const theirs = page.toCues(said, wireWords, durationSec);
      assert.equal(page.toSrt(theirs), toSrt(ours));
      assert.equal(page.toVtt(theirs), toVtt(ours));
    }),
    { numRuns: 300 },
  );
});

test('a line is as wide on the page as in the gateway’s answers', () => {
  const text = ' 東京と京都の間を走る新幹線は毎日多くの人を運んでいます。'.repeat(2);
  const [cue] = page.toCues([{ start: 0, end: 6, text, speaker: '田中' }], undefined, 6);
  for (const line of page
    .toSrt(cue ? [cue] : [])
    .split('\n')
    .slice(2, -2))
    assert(line.length <= 21, line);
});

test('words that were not measured make subtitles of the same limits', () => {
  const text =
    ' When the rain had stopped and the birds came back, we walked down to the river to look for the boat.';
  const cues = page.toCues([{ start: 0, end: 6, text }], undefined, 6);
  assert.deepEqual(
    cues.map((cue) => cue.text.trim()),
    [
      'When the rain had stopped and the birds came back,',
      'we walked down to the river to look for the boat.',
    ],
  );
});
