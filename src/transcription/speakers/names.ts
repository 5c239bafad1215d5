/** What speakers are called: the name of a known voice, or else A, B, C ... as they first appear. Pure. */
import { cosine } from './voice.ts';

/** A person whose voice the client gave. */
export interface KnownVoice {
  name: string;
  /** The embedding of the reference, of unit length. */
  direction: Float32Array;
}

/** A voice whose cosine with a reference is at least this is that person's. */
export const NAME_COSINE = 0.5;

/**
 * The known voice of each speaker: each voice names the one speaker who is most like it, and only where they are alike
 * enough. The most alike pair is matched first.
 */
export function matchKnown(
  speakers: readonly Float32Array[],
  known: readonly KnownVoice[],
): (string | undefined)[] {
  const pairs = speakers.flatMap((direction, speaker) =>
    known.map((voice, reference) => ({ speaker, reference, similarity: cosine(direction, voice.direction) })),
  );
  const names = new Array<string | undefined>(speakers.length).fill(undefined);
  const used = new Set<number>();
  for (const { speaker, reference, similarity } of pairs.sort((a, b) => b.similarity - a.similarity)) {
    if (similarity < NAME_COSINE) break;
    if (names[speaker] !== undefined || used.has(reference)) continue;
    names[speaker] = known[reference]?.name;
    used.add(reference);
  }
  return names;
}

/**
 * The label of a speaker, the same at every call. Labels are given when they are first asked for, so ask in the order in
 * which the speakers appear.
 * @param nameOf the name of a known speaker
 * @param taken the names of all known voices, which no other speaker gets
 */
export function createLabels(
  nameOf: (speaker: number) => string | undefined,
  taken: readonly string[] = [],
): (speaker: number) => string {
  const given = new Map<number, string>();
  let letters = 0;

  function nextFree(): string {
    const label = lettersOf(letters++);
    return taken.includes(label) ? nextFree() : label;
  }

  return (speaker) => {
    const label = given.get(speaker) ?? nameOf(speaker) ?? nextFree();
    given.set(speaker, label);
    return label;
  };
}

/** A ... Z, AA, AB ... */
function lettersOf(index: number): string {
  const rest = Math.floor(index / 26);
  return (rest > 0 ? lettersOf(rest - 1) : '') + String.fromCharCode(65 + (index % 26));
}
