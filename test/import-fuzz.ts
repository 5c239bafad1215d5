/**
 * Damages the parts of a CTranslate2 Whisper folder in ways that a seed decides, and imports what remains. Every
 * import must end soon, with a whole file or with the error that refuses it.
 */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GatewayError } from '../src/errors.ts';
import { openFasterWhisper } from '../src/models/import/faster-whisper.ts';
import { writeWhisper } from '../src/models/import/whisper-ggml.ts';
import { TINY, tinyVocabulary, type WeightType, writeTinyWhisper } from './model/tiny-whisper.ts';

const LONGEST_MS = 10_000;
/** Numbers at which parsers go wrong. */
const EXTREMES = [0, 1, 2, 3, 7, 8, 9, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff];
const TEXTS = ['vocabulary.txt', 'vocabulary.json', 'tokenizer.json'] as const;

export interface FuzzedImports {
  imported: number;
  refused: number;
}

/** Imports `rounds` damaged folders. @throws AssertionError which names the round, when one ends in another way */
export async function fuzzImports(seed: number, rounds: number): Promise<FuzzedImports> {
  const dir = await mkdtemp(join(tmpdir(), 'voxgate-import-fuzz-'));
  const random = randomNumbers(seed);
  const counts: FuzzedImports = { imported: 0, refused: 0 };
  try {
    const models = await soundModels(dir);
    const texts = soundTexts();
    for (let round = 0; round < rounds; round++) {
      const model = pick(models, random);
      const text = pick(TEXTS, random);
      const damagesText = random(4) === 0;
      const folder = join(dir, 'folder');
      await mkdir(folder);
      await writeFile(join(folder, 'model.bin'), damagesText ? model : damaged(model, random));
      await writeFile(join(folder, text), damagesText ? damaged(texts[text], random) : texts[text]);
      const startedAt = Date.now();
      const outcome = await importFolder(folder, join(dir, 'out.bin'));
      const where = `seed ${seed}, round ${round}`;
      assert(outcome === null || isRefusal(outcome), `${where}: ${String(outcome)}`);
      assert(Date.now() - startedAt < LONGEST_MS, `${where} took ${Date.now() - startedAt} ms`);
      if (outcome === null) counts.imported++;
      else counts.refused++;
      await rm(folder, { recursive: true });
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
  return counts;
}

/** The error of an import; null for one that succeeds. */
async function importFolder(folder: string, target: string): Promise<unknown> {
  try {
    await using model = await openFasterWhisper(folder);
    const { bytes } = await writeWhisper(model, target);
    assert.equal((await readFile(target)).length, bytes);
    return null;
  } catch (error) {
    return error;
  }
}

const isRefusal = (error: unknown) => error instanceof GatewayError && error.code === 'not_importable';

async function soundModels(dir: string): Promise<Buffer[]> {
  const types: WeightType[] = ['float16', 'float32', 'bfloat16', 'int8'];
  const models: Buffer[] = [];
  for (const type of types) {
    const folder = join(dir, type);
    await mkdir(folder);
    await writeTinyWhisper(folder, { ...TINY, audioLayers: 1 }, type);
    models.push(await readFile(join(folder, 'model.bin')));
  }
  return models;
}

function soundTexts(): Record<(typeof TEXTS)[number], Buffer> {
  const tokens = tinyVocabulary(280);
  const numbered = tokens.map((token, id) => [id < 280 ? `${'abcdefgh'[id % 8]}${id}` : token, id] as const);
  const vocab = Object.fromEntries(numbered.slice(0, 280));
  const added = numbered.slice(280).map(([content, id]) => ({ id, content }));
  return {
    'vocabulary.txt': Buffer.from(`${tokens.join('\n')}\n`),
    'vocabulary.json': Buffer.from(JSON.stringify(tokens)),
    'tokenizer.json': Buffer.from(JSON.stringify({ model: { vocab }, added_tokens: added })),
  };
}

type RandomNumbers = (below: number) => number;

/** Marsaglia's xorshift32, https://www.jstatsoft.org/article/view/v008i14 */
function randomNumbers(seed: number): RandomNumbers {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

function pick<T>(from: readonly T[], random: RandomNumbers): T {
  return from[random(from.length)] as T;
}

/** One to four changes, mostly near the names of the variables, because most other bytes are weights. */
function damaged(bytes: Buffer, random: RandomNumbers): Buffer {
  let result: Buffer = Buffer.from(bytes);
  for (let changes = 1 + random(4); changes > 0; changes--) {
    if (result.length < 16) return result;
    result = changed(result, placeIn(result, random), random);
  }
  return result;
}

function placeIn(bytes: Buffer, random: RandomNumbers): number {
  if (random(8) === 0) return random(bytes.length - 8);
  if (random(4) === 0) return random(Math.min(64, bytes.length - 8));
  const name = bytes.indexOf('/', random(bytes.length));
  const near = (name < 0 ? bytes.length : name) + random(96) - 32;
  return Math.min(Math.max(near, 0), bytes.length - 8);
}

function changed(bytes: Buffer, place: number, random: RandomNumbers): Buffer {
  const size = 1 + random(8);
  switch (random(7)) {
    case 0:
      return bytes.subarray(0, place);
    case 1:
      return Buffer.concat([bytes.subarray(0, place), bytes.subarray(place + size)]);
    case 2: {
      const piece = bytes.subarray(random(bytes.length));
      return Buffer.concat([bytes.subarray(0, place), piece.subarray(0, size), bytes.subarray(place)]);
    }
    case 3:
      bytes.writeUInt32LE(pick(EXTREMES, random), place);
      return bytes;
    case 4:
      bytes.writeUInt16LE(pick(EXTREMES, random) & 0xffff, place);
      return bytes;
    case 5:
      bytes[place] = (bytes[place] ?? 0) ^ (1 << random(8));
      return bytes;
    default:
      bytes[place] = random(256);
      return bytes;
  }
}
