/** Reads the vocabulary of a faster-whisper folder, which is in one of three files. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { notImportable } from './failure.ts';

const MAX_FILE_BYTES = 64 * 1024 * 1024;
const END_OF_TEXT = '<|endoftext|>';
/** The tools of whisper.cpp read a token into a buffer of 128 bytes. */
const MAX_TOKEN_BYTES = 128;

/**
 * The bytes of each text token, by rank.
 * @throws GatewayError `not_importable` when the folder has no vocabulary of Whisper
 */
export async function readVocabulary(dir: string): Promise<Buffer[]> {
  const tokens = await readTokens(dir);
  const end = tokens.indexOf(END_OF_TEXT);
  if (end < 256) {
    throw notImportable(
      `The vocabulary in ${dir} is not Whisper's: no ${END_OF_TEXT} after the text tokens.`,
    );
  }
  const bytes = byteAlphabet();
  return tokens.slice(0, end).map((token) => {
    const values = [...token].map((character) => bytes.get(character));
    if (values.length > MAX_TOKEN_BYTES || values.some((value) => value === undefined)) {
      throw notImportable(
        `The vocabulary in ${dir} is not byte-level BPE: token ${JSON.stringify(token.slice(0, 80))}.`,
      );
    }
    return Buffer.from(values as number[]);
  });
}

async function readTokens(dir: string): Promise<string[]> {
  const text = await readIfThere(join(dir, 'vocabulary.txt'));
  if (text !== null) return text.replace(/\r?\n$/, '').split(/\r?\n/);
  const json = await readIfThere(join(dir, 'vocabulary.json'));
  if (json !== null) return parse(join(dir, 'vocabulary.json'), json, z.array(z.string()));
  const tokenizer = await readIfThere(join(dir, 'tokenizer.json'));
  if (tokenizer !== null) {
    const shape = z.looseObject({
      model: z.looseObject({ vocab: z.record(z.string(), z.int().nonnegative()) }),
      added_tokens: z.array(z.looseObject({ id: z.int().nonnegative(), content: z.string() })).default([]),
    });
    const { model, added_tokens } = parse(join(dir, 'tokenizer.json'), tokenizer, shape);
    return byRank(dir, [
      ...Object.entries(model.vocab),
      ...added_tokens.map((added): [string, number] => [added.content, added.id]),
    ]);
  }
  throw notImportable(`${dir} has no vocabulary.txt, vocabulary.json or tokenizer.json.`);
}

/** The tokens in the order of their ranks. No rank may be missing, because whisper.cpp uses the position as the id. */
function byRank(dir: string, entries: [string, number][]): string[] {
  const tokens: string[] = [];
  for (const [token, rank] of entries.sort((a, b) => a[1] - b[1])) {
    if (rank === tokens.length - 1 && tokens[rank] === token) continue; // the token is listed in both tables
    if (rank !== tokens.length)
      throw notImportable(`The vocabulary in ${dir} has no single token of rank ${tokens.length}.`);
    tokens.push(token);
    if (token === END_OF_TEXT) break;
  }
  return tokens;
}

async function readIfThere(path: string): Promise<string | null> {
  const info = await stat(path).catch(() => null);
  if (!info) return null;
  if (!info.isFile() || info.size > MAX_FILE_BYTES) {
    throw notImportable(`${path} is not a vocabulary file: ${info.size} bytes.`);
  }
  return readFile(path, 'utf8');
}

function parse<T>(path: string, text: string, shape: z.ZodType<T>): T {
  try {
    return shape.parse(JSON.parse(text));
  } catch (error) {
    throw notImportable(`${path} does not have the content of that file in a faster-whisper folder.`, error);
  }
}

/** GPT-2's table, which represents each of the 256 bytes by a printable character. */
function byteAlphabet(): Map<string, number> {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  const table = new Map<string, number>();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    table.set(String.fromCodePoint(printable(byte) ? byte : next++), byte);
  }
  return table;
}
