/**
 * Makes long recordings out of short ones: it takes other sentences in turn, with pauses, the same ones at every
 * call.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wavHeader } from '../../test/wav.ts';
import { type Random, seededRandom } from '../common/random.ts';
import { BYTES_A_SECOND, wavSamples } from '../common/samples.ts';
import { CLIP_FOLDER, type Clip, wavSeconds } from './clips.ts';

interface Length {
  seconds: number;
  pauseSec: number;
}

/**
 * Joins as many sentences as `seconds` hold, each with the pause behind it, and writes them once. None when there are
 * too few.
 */
export function longClip(name: string, sentences: Clip[], length: Length): Clip[] {
  if (sentences.length < 2) return []; // one sentence again and again is no speech
  const key = JSON.stringify([sentences.map((clip) => [clip.name, clip.seconds, clip.text]), length]);
  return [joined(name, key, () => chooseSentences(sentences, length), length.pauseSec)];
}

/** Says the same sentence again and again, with the pause behind each. */
export function repeatedClip(sentence: Clip, times: number, pauseSec: number): Clip {
  const key = JSON.stringify([sentence.name, sentence.text, times, pauseSec]);
  return joined(`${sentence.name}-repeated`, key, () => Array(times).fill(sentence), pauseSec);
}

/** Says the sentences one after the other, with the pause behind each. */
export function clipInTurns(name: string, sentences: readonly Clip[], pauseSec: number): Clip {
  const key = JSON.stringify([sentences.map((clip) => [clip.name, clip.seconds, clip.text]), pauseSec]);
  return joined(name, key, () => [...sentences], pauseSec);
}

function joined(name: string, key: string, choose: () => Clip[], pauseSec: number): Clip {
  const stem = join(CLIP_FOLDER, `${name}-${createHash('sha256').update(key).digest('hex').slice(0, 8)}`);
  const audio = `${stem}.wav`;
  if (!existsSync(`${stem}.txt`)) write(stem, choose(), pauseSec);
  const text = readFileSync(`${stem}.txt`, 'utf8');
  return { name, audio, seconds: wavSeconds(audio), text };
}

/** Takes each sentence once before any comes again, and none twice in a row; the last ones are chosen to fit. */
function chooseSentences(sentences: Clip[], { seconds, pauseSec }: Length): Clip[] {
  const random = seededRandom(1);
  const chosen: Clip[] = [];
  let left = seconds;
  let deck: Clip[] = [];
  const draw = () => {
    const fits = (clip: Clip) => clip !== chosen.at(-1) && clip.seconds + pauseSec <= left;
    if (!deck.some(fits)) deck = shuffle(sentences, random);
    const at = deck.findIndex(fits);
    return at < 0 ? undefined : deck.splice(at, 1)[0];
  };
  for (let next = draw(); next !== undefined; next = draw()) {
    chosen.push(next);
    left -= next.seconds + pauseSec;
  }
  return chosen;
}

function write(stem: string, chosen: Clip[], pauseSec: number): void {
  const pause = Buffer.alloc(pauseSec * BYTES_A_SECOND);
  const samples = Buffer.concat(chosen.flatMap(({ audio }) => [wavSamples(audio), pause]));
  writeFileSync(`${stem}.wav`, Buffer.concat([wavHeader(samples.length), samples]));
  writeFileSync(`${stem}.txt`, chosen.map((clip) => clip.text).join(' '));
}

function shuffle(clips: Clip[], random: Random): Clip[] {
  const shuffled = [...clips];
  for (let i = shuffled.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1));
    const [a, b] = [shuffled[i], shuffled[j]];
    if (a && b) [shuffled[i], shuffled[j]] = [b, a];
  }
  return shuffled;
}
