/**
 * The Parakeet family turns one chunk of speech into sentences or subtitles. The model is a transducer that predicts
 * tokens and durations (Xu et al. 2023, arXiv 2304.06795): it reads the audio in one pass, without a prompt, a
 * temperature or another attempt, and gives every token its time.
 */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { DecodedSegment, Lane } from '../../engine/types.ts';
import { isLoop } from '../decoding.ts';
import type { DetectedLanguage } from '../language/tally.ts';
import { type ChunkRequest, GREEDY, type Recognizer, withoutText } from '../recognizer.ts';
import { textOf, toSegments, type Word } from '../segment.ts';
import type { Chunk } from '../speech/chunks.ts';
import { groupsOf } from '../text/sentences.ts';
import { toSubtitles } from '../text/subtitles.ts';
import { withLengths } from '../text/word-lengths.ts';
import { spell } from '../text/words.ts';
import { languageOfText } from './text-language.ts';

/** The length of a word whose tokens all have no duration, unless the next word begins earlier. */
const INSTANT_SEC = 0.3;
/** The language reported when it follows neither from the words nor from those of the chunk before. */
const USUAL_LANGUAGE = 'en';

export const recognizer: Recognizer = {
  limits: () => ({}),
  cutsSubtitles: true,

  async recognize(lane, chunk, request) {
    const durationSec = chunk.samples.length / SAMPLE_RATE;
    let words = await wordsIn(chunk, lane, request);
    const close = closeToSpeech(chunk);
    if (words.length === 0 && close !== null) words = await wordsIn(close, lane, request);
    const detected = await detectLanguage(textOf(words), lane, request);
    if (isLoop({ text: textOf(words), tokens: words.length }, durationSec))
      return { detected, sentences: [], dropped: [withoutText(chunk, 'repetition')] };
    const isCut = request.timed && request.granularity === 'subtitle';
    const subtitles = isCut ? toSubtitles(words, chunk.silentUntilSec) : null;
    const groups = subtitles?.map((subtitle) => subtitle.words) ?? groupsOf(words, request);
    const common = { temperature: 0, noSpeechProb: 0, language: detected.language };
    const sentences = toSegments(groups, chunk, common);
    // A subtitle may stay longer than its last word.
    return {
      detected,
      sentences: sentences.map((one, i) => ({ ...one, end: subtitles?.[i]?.end ?? one.end })),
    };
  },
};

async function wordsIn(
  { startSec, samples }: Pick<Chunk, 'startSec' | 'samples'>,
  lane: Lane,
  { keywords, signal }: ChunkRequest,
): Promise<Word[]> {
  const options = { ...GREEDY, keywords, language: lane.info.languages[0] ?? USUAL_LANGUAGE };
  const segments = await lane.transcribe(samples, options, { signal });
  return toSpacedWords(segments, startSec, startSec + samples.length / SAMPLE_RATE);
}

/**
 * The chunk without what is heard around its spans of speech, which themselves begin and end with up to 0.2 s of silence;
 * null where nothing is. The published weights may write nothing at all for speech that 0.4 to 0.8 s of silence stand
 * before (FluidAudio#746) or behind (NVIDIA-NeMo/Speech#15757), and write the same speech with less of it: the features
 * are normalized over all that is heard. The silence is heard first all the same, as soft words begin and end in it.
 */
function closeToSpeech({ startSec, endSec, samples, speech }: Chunk) {
  const [first, last] = [speech[0]?.startSec ?? startSec, speech.at(-1)?.endSec ?? endSec];
  const [begin, end] = [first, last].map((sec) => Math.max(0, Math.round((sec - startSec) * SAMPLE_RATE)));
  const close = samples.subarray(begin, end);
  if (close.length === 0 || close.length === samples.length) return null;
  return { startSec: startSec + (begin ?? 0) / SAMPLE_RATE, samples: close };
}

/** The model does not say which of its 25 languages it heard, so the client's is recorded or the text's detected. */
async function detectLanguage(
  text: string,
  { info }: Lane,
  { language, languages, before }: ChunkRequest,
): Promise<DetectedLanguage> {
  if (language !== undefined) return { language, probability: 1 };
  const asked = info.languages.filter((code) => languages.includes(code));
  const among = asked.length > 0 ? asked : info.languages;
  const usual = among.includes(USUAL_LANGUAGE) ? USUAL_LANGUAGE : (among[0] ?? USUAL_LANGUAGE);
  return (
    languageOfText(text, among) ?? (await before()).languages.last ?? { language: usual, probability: 0 }
  );
}

/** True for punctuation, which is not spoken. A percent sign and similar signs are. */
const isMark = (text: string) => /^(?:\s|(?![%‰&@#*/§])\p{P})*$/u.test(text);

/**
 * The words of one chunk, with times in seconds from the start of the audio. A word begins at a token with a leading
 * space. It ends with its last spoken token, because the model also gives punctuation a duration.
 */
export function toSpacedWords(segments: DecodedSegment[], offsetSec: number, endSec: number): Word[] {
  const words: Word[] = [];
  let marks: Word | null = null; // marks before the first word, which become a part of it
  for (const word of joinPieces(segments.flatMap((segment) => spell(segment.tokens, offsetSec)))) {
    const last = words.at(-1);
    if (!isMark(word.text)) {
      words.push(marks === null ? word : { ...append(marks, word), end: word.end });
      marks = null;
    } else if (last !== undefined) words[words.length - 1] = append(last, word);
    else marks = marks === null ? word : append(marks, word);
  }
  if (marks !== null && marks.text.trim() !== '') words.push(marks);
  return withLengths(
    words.map((word, i) => limitTimes(word, words[i + 1]?.start ?? endSec)),
    endSec,
  );
}

/** The `end` of a word is that of its last spoken piece, else that of its first piece. */
function joinPieces(pieces: Word[]): Word[] {
  const words: Word[] = [];
  for (const piece of pieces) {
    const last = words.at(-1);
    if (last === undefined || piece.text.startsWith(' ')) words.push(piece);
    else words[words.length - 1] = { ...append(last, piece), end: isMark(piece.text) ? last.end : piece.end };
  }
  return words;
}

function append(a: Word, b: Word): Word {
  return { ...a, text: (a.text + b.text).trimEnd(), tokens: [...a.tokens, ...b.tokens] };
}

function limitTimes(word: Word, nextStart: number): Word {
  const end = word.end > word.start ? word.end : word.start + INSTANT_SEC;
  return { ...word, end: Math.max(word.start, Math.min(end, nextStart)) };
}
