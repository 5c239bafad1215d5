/**
 * Matches the words that were recognized with those of a text that is given: a global alignment with affine gaps (Gotoh
 * 1982), whose end is free, because the text may go on behind what was recognized. Pure.
 */

const EQUAL_WORDS = 32;
const OTHER = -16;
/** A gap costs more than a word or two that are the same by chance, so other speech does not eat words of the text. */
const OPEN = -40;
const RECOGNIZED_ONLY = -8;
/** Cheap, so that the path can skip a long passage of the text that is not said. */
const TEXT_ONLY = -1;

/** What a path ends with: a pair of words, a word that was only recognized, or one that is only in the text. */
const PAIR = 0;
const HEARD = 1;
const TEXT = 2;
const NEVER = -(2 ** 29);

/**
 * For each word of `text` the index in `recognized` of the word that stands in its place, which is mostly the same
 * word; -1 where there is none. The indices rise. Time and memory grow with the product of the lengths.
 */
export function matchWords(recognized: readonly string[], text: readonly string[]): number[] {
  const width = text.length + 1;
  const numbers = new Map<string, number>();
  const numberOf = (word: string) => {
    const number = numbers.get(word) ?? numbers.size;
    numbers.set(word, number);
    return number;
  };
  const numbered = (words: readonly string[]) => Int32Array.from(words, numberOf);
  const recognizedAs = numbered(recognized);
  const textAs = numbered(text);
  // For each cell, the state before each of its states, in two bits.
  const from = new Uint8Array((recognized.length + 1) * width);
  // The best score that ends in each state, for each number of words of the text: one row for the words recognized so far.
  // The loops are written for speed, because they run for each pair of words.
  const pairs = new Int32Array(width).fill(NEVER);
  const onlyRecognized = new Int32Array(width).fill(NEVER);
  const texts = new Int32Array(width).fill(NEVER);
  pairs[0] = 0;
  for (let h = 0; h <= recognized.length; h++) {
    let [cornerPair, cornerRecognized, cornerText] = [NEVER, NEVER, NEVER]; // of the row before, one word earlier
    for (let t = 0; t < width; t++) {
      const abovePair = pairs[t] as number;
      const aboveRecognized = onlyRecognized[t] as number;
      const aboveText = texts[t] as number;
      let states = 0;
      if (h > 0) {
        const best = Math.max(cornerPair, cornerRecognized, cornerText);
        states = best === cornerPair ? PAIR : best === cornerRecognized ? HEARD : TEXT;
        pairs[t] = Math.max(NEVER, best + (recognizedAs[h - 1] === textAs[t - 1] ? EQUAL_WORDS : OTHER));
        const other = Math.max(abovePair, aboveText) + OPEN;
        if (aboveRecognized < other) states |= (abovePair >= aboveText ? PAIR : TEXT) << 2;
        else states |= HEARD << 2;
        onlyRecognized[t] = Math.max(NEVER, aboveRecognized, other) + RECOGNIZED_ONLY;
      }
      if (t > 0) {
        const leftPair = pairs[t - 1] as number;
        const leftRecognized = onlyRecognized[t - 1] as number;
        const leftText = texts[t - 1] as number;
        const other = Math.max(leftPair, leftRecognized) + OPEN;
        if (leftText < other) states |= (leftPair >= leftRecognized ? PAIR : HEARD) << 4;
        else states |= TEXT << 4;
        texts[t] = Math.max(NEVER, leftText, other) + TEXT_ONLY;
      }
      from[h * width + t] = states;
      cornerPair = abovePair;
      cornerRecognized = aboveRecognized;
      cornerText = aboveText;
    }
    if (h > 0) texts[0] = NEVER;
  }
  let t = 0;
  let state = PAIR;
  let best = NEVER;
  for (let end = 0; end < width; end++) {
    for (const [ending, scores] of [pairs, onlyRecognized].entries()) {
      const score = scores[end] ?? NEVER;
      if (score > best) [t, state, best] = [end, ending, score];
    }
  }
  return traced(from, { recognized: recognized.length, text: t, state, width });
}

/** Follows the path back from its end. */
function traced(
  from: Uint8Array,
  end: { recognized: number; text: number; state: number; width: number },
): number[] {
  const matched = new Array<number>(end.width - 1).fill(-1);
  let { recognized: h, text: t, state } = end;
  while (h > 0 || t > 0) {
    const before = ((from[h * end.width + t] ?? 0) >> (2 * state)) & 3;
    if (state === PAIR) matched[t - 1] = h - 1;
    if (state !== TEXT) h--;
    if (state !== HEARD) t--;
    state = before;
  }
  return matched;
}
