/**
 * Finds the recognizer of a family in its folder, such as `whisper/recognizer.ts`. A new family needs a file
 * here and an entry in the catalogue, but no change to this file.
 */
import type { Recognizer } from './recognizer.ts';

/**
 * @param family the family of a model in the catalogue. It must never come from a client, because it is put in a path.
 * @throws Error when the family has no file, which a test rules out for the catalogue
 */
export async function recognizerOf(family: string): Promise<Recognizer> {
  const { recognizer } = (await import(`./${family}/recognizer.ts`)) as { recognizer: Recognizer };
  return recognizer;
}
