/** Reads the vocabulary of a faster-whisper folder, which is in one of three files. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BoundedFile } from './bounded-file.ts';
import { notImportable } from './failure.ts';

/** The largest file of a real Whisper, tokenizer.json with all its languages, has 2.5 MB. */
const MAX_FILE_BYTES = 16 * 1024 * 1024;
/** The largest real vocabulary has 51,866 tokens. */
const MAX_TOKENS = 100_000;
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
  if (text !== null) return text.replace(/\r?\n$/, '').split(/\r?\n/, MAX_TOKENS);
  for (const [name, read] of [
    ['vocabulary.json', tokensOfList],
    ['tokenizer.json', tokensOfTokenizer],
  ] as const) {
    const path = join(dir, name);
    const json = await readIfThere(path);
    if (json !== null) return read(parse(path, json), path);
  }
  throw notImportable(`${dir} has no vocabulary.txt, vocabulary.json or tokenizer.json.`);
}

// These readers stop at the first wrong item. A schema would describe each of them, and a file may have millions.

function tokensOfList(list: unknown, path: string): string[] {
  if (!Array.isArray(list) || list.length > MAX_TOKENS) throw notVocabulary(path);
  return list.map((token: unknown) => {
    if (typeof token !== 'string') throw notVocabulary(path);
    return token;
  });
}

/** https://huggingface.co/docs/tokenizers/api/tokenizer: the ranks by token, and tokens that were added to them. */
function tokensOfTokenizer(tokenizer: unknown, path: string): string[] {
  const { model, added_tokens: added = [] } = Object(tokenizer);
  const ranks = Object.entries<unknown>(Object(Object(model).vocab));
  if (!Array.isArray(added) || ranks.length + added.length > MAX_TOKENS) throw notVocabulary(path);
  return byRank(path, [
    ...ranks.map(([token, rank]) => [token, rankOf(rank, path)] as const),
    ...added.map((entry: unknown) => {
      const { content, id } = Object(entry);
      if (typeof content !== 'string') throw notVocabulary(path);
      return [content, rankOf(id, path)] as const;
    }),
  ]);
}

function rankOf(rank: unknown, path: string): number {
  if (typeof rank !== 'number' || !Number.isSafeInteger(rank) || rank < 0) throw notVocabulary(path);
  return rank;
}

/** The tokens in the order of their ranks. No rank may be missing, because whisper.cpp uses the position as the id. */
function byRank(path: string, entries: (readonly [string, number])[]): string[] {
  const tokens: string[] = [];
  for (const [token, rank] of entries.sort((a, b) => a[1] - b[1])) {
    if (rank === tokens.length - 1 && tokens[rank] === token) continue; // the token is listed in both tables
    if (rank !== tokens.length) throw notImportable(`${path} has no single token of rank ${tokens.length}.`);
    tokens.push(token);
    if (token === END_OF_TEXT) break;
  }
  return tokens;
}

async function readIfThere(path: string): Promise<string | null> {
  if ((await stat(path).catch(() => null)) === null) return null;
  await using file = await BoundedFile.open(path);
  if (file.size > MAX_FILE_BYTES)
    throw notImportable(`${path} is not a vocabulary file: ${file.size} bytes.`);
  return (await file.read(0, file.size)).toString('utf8');
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notVocabulary(path, error);
  }
}

const notVocabulary = (path: string, cause?: unknown) =>
  notImportable(`${path} does not have the content of that file in a faster-whisper folder.`, cause);

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
