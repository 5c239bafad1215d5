/** Puts what a voice says in one go together from its recordings, each taken once before any comes again. */
import { type Random, shuffled } from '../../common/random.ts';
import { energyOf, floatsOf, RATE, samplesOfAll } from '../../common/samples.ts';
import type { Said } from './plan.ts';
import type { Utterance, Voice } from './recorded-voices.ts';
import { type Span, speechSpans } from './speech-spans.ts';

/** Words with their times, in seconds from the start of what they belong to. */
export interface Wording extends Span {
  text: string;
}

export interface Spoken extends Said {
  /** At 16 kHz, from -1 to 1, as loud as every voice. */
  samples: Float32Array;
  /** Null where the text of a part is unknown. */
  wording: Wording[] | null;
}

interface Part {
  samples: Float32Array;
  spans: Span[];
  text: string | null;
}

/** Root mean square of the speech, full scale being 1; -26 dB as ITU-T P.56 levels are set for tests. */
const LEVEL = 0.05;
const PAUSE_SEC = [0.08, 0.4] as const;
/** One recording more is not worth a turn that is longer than wanted by this share. */
const TOO_LONG = 1.3;
const MOST_TRIES = 12;
const DECODED_AT_ONCE = 16;

/** @param random uniform values from 0 to 1, seeded */
export function speaking(
  { utterances }: Pick<Voice, 'utterances'>,
  random: Random,
): (seconds: number) => Spoken {
  let [deck, ready]: [Utterance[], (Part | null)[]] = [[], []];
  const draw = () => {
    if (deck.length === 0) deck = shuffled(utterances, random);
    if (ready.length === 0) ready = partsOf(deck.splice(0, DECODED_AT_ONCE));
    return ready.shift() ?? null;
  };
  return (seconds) => {
    const parts: Part[] = [];
    let total = 0;
    for (let tries = 0; tries < MOST_TRIES && total < seconds; tries += 1) {
      const part = draw();
      if (part === null) continue;
      const length = part.samples.length / RATE;
      if (parts.length > 0 && total + length > TOO_LONG * seconds) continue;
      parts.push(part);
      total += length;
    }
    return joined(parts, random);
  };
}

function joined(parts: readonly Part[], random: Random): Spoken {
  const [least, most] = PAUSE_SEC;
  let at = 0;
  const placed = parts.map((part) => {
    const start = at;
    at += part.samples.length + Math.round((least + (most - least) * random()) * RATE);
    return { ...part, start };
  });
  const last = placed.at(-1);
  const samples = new Float32Array(last === undefined ? 0 : last.start + last.samples.length);
  for (const part of placed) samples.set(part.samples, part.start);
  const known = placed.flatMap(({ text, start, samples: own }) =>
    text === null ? [] : [{ text, start: start / RATE, end: (start + own.length) / RATE }],
  );
  return {
    samples,
    seconds: samples.length / RATE,
    spans: placed.flatMap(({ spans, start }) =>
      spans.map((span) => ({ start: start / RATE + span.start, end: start / RATE + span.end })),
    ),
    wording: known.length === placed.length ? known : null,
  };
}

function partsOf(utterances: readonly Utterance[]): (Part | null)[] {
  const decoded = samplesOfAll(utterances.map(({ audio }) => audio));
  return decoded.map((bytes, i) => partOf(floatsOf(bytes), utterances[i]?.text ?? null));
}

/** Cuts the silence around the speech, and sets its level. Null where the recording has no speech. */
function partOf(all: Float32Array, text: string | null): Part | null {
  const found = speechSpans(all);
  const [first, last] = [found[0], found.at(-1)];
  if (first === undefined || last === undefined) return null;
  const cut = all.subarray(Math.round(first.start * RATE), Math.round(last.end * RATE));
  const spans = found.map(({ start, end }) => ({ start: start - first.start, end: end - first.start }));
  let [energy, count] = [0, 0];
  for (const { start, end } of spans) {
    const heard = cut.subarray(Math.round(start * RATE), Math.round(end * RATE));
    energy += energyOf(heard);
    count += heard.length;
  }
  const gain = LEVEL / Math.sqrt(energy / count);
  return { samples: cut.map((sample) => sample * gain), spans, text };
}
