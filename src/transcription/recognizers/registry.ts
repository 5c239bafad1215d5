/**
 * Recognizers by the name of their family: `whisper` is in `whisper.ts`. A new family needs a file here and an entry
 * in the catalogue, and no line in this one.
 */
import type { Recognizer } from './recognizer.ts';

/**
 * @param family of a model of the catalogue; never a client's text, because it becomes part of a path
 * @throws Error where the family has no file, which a test rules out for the catalogue
 */
export async function recognizerOf(family: string): Promise<Recognizer> {
  const { recognizer } = (await import(`./${family}.ts`)) as { recognizer: Recognizer };
  return recognizer;
}
