/**
 * The SenseVoice family (An et al. 2024, arXiv 2407.04051) turns one chunk of speech into sentences. One pass of the
 * model gives the language and the text.
 */
import type { DecodedSegment, Lane } from '../../engine/types.ts';
import type { DetectedLanguage } from '../language/tally.ts';
import { type ChunkRequest, GREEDY, type Recognizer } from '../recognizer.ts';
import { beginsUnspaced, endsUnspaced, toSegments, type Word } from '../segment.ts';
import type { Chunk } from '../speech/chunks.ts';
import { groupsOf } from '../text/sentences.ts';
import { withLengths } from '../text/word-lengths.ts';
import { toWords } from '../text/words.ts';

/** The first language of the model, reported when no words were heard and the client gave no language. */
const FIRST_LANGUAGE = 'zh';

export const recognizer: Recognizer = {
  limits: () => ({}),

  async recognize(lane, chunk, request) {
    const segment = await decode(lane, chunk, request);
    const detected = await detectedLanguage(segment, request);
    if (segment === undefined) return { detected, sentences: [] };
    const written = unspaced(toWords([segment], 'mul', chunk.startSec, chunk.speech));
    const words = withLengths(written, chunk.endSec);
    const { emotion, event, noSpeechProb } = segment;
    const sentences = toSegments(groupsOf(words, request), chunk, {
      temperature: 0,
      noSpeechProb,
      language: detected.language,
      emotion: spelled(emotion),
      event: spelled(event),
    });
    return { detected, sentences };
  },
};

/** Decodes the chunk in the language that the client gave or allows. Undefined when the model heard no words. */
async function decode(
  lane: Lane,
  chunk: Chunk,
  { language, languages, keywords, taskType, signal }: ChunkRequest,
): Promise<DecodedSegment | undefined> {
  const decodeAs = async (as: string) => {
    const options = { ...GREEDY, keywords, language: as, normalizeText: taskType !== 'transcribe_raw' };
    const segments = await lane.transcribe(chunk.samples, options, { signal });
    return segments[0];
  };
  const allowed = lane.info.languages.filter((code) => languages.includes(code));
  if (language !== undefined) return await decodeAs(language);
  if (allowed.length === 1) return await decodeAs(allowed[0] ?? '');
  const decoded = await decodeAs('');
  if (allowed.length === 0 || decoded?.language === undefined || allowed.includes(decoded.language))
    return decoded;
  // The model chose a language that the client ruled out. It decodes again in the most probable allowed one.
  const { probabilities } = await lane.detectLanguage(chunk.samples, { audioContext: 0 }, { signal });
  allowed.sort((a, b) => (probabilities[b] ?? 0) - (probabilities[a] ?? 0));
  return await decodeAs(allowed[0] ?? '');
}

async function detectedLanguage(
  segment: DecodedSegment | undefined,
  { language, before }: ChunkRequest,
): Promise<DetectedLanguage> {
  if (language !== undefined) return { language, probability: 1 };
  if (segment?.language === undefined)
    return (await before()).languages.last ?? { language: FIRST_LANGUAGE, probability: 0 };
  return { language: segment.language, probability: segment.languageProbability ?? 0 };
}

/** Removes the spaces that the vocabulary puts before Han and Kana, except after a word of a spaced script. */
function unspaced(words: Word[]): Word[] {
  return words.map((word, i) => {
    const text = word.text.trimStart();
    const before = words[i - 1];
    const joined = beginsUnspaced(text) && (before === undefined || endsUnspaced(before.text));
    return joined ? { ...word, text } : word;
  });
}

/** The tag in lower case. `EMO_UNKNOWN` and `Event_UNK` mean that the model does not know. */
function spelled(tag = 'unknown'): string {
  return /unk(nown)?$/i.test(tag) ? 'unknown' : tag.toLowerCase();
}
