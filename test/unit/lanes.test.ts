/** Chunks run side by side on scripted lanes: these tests cover the order, the waiting, and every way to end early. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lane, TranscriptionModel } from '../../src/engine/types.ts';
import { type ChunkRecognition, type LaneWork, onLanes } from '../../src/transcription/lanes.ts';
import type { Recognition } from '../../src/transcription/recognizer.ts';
import type { UnnumberedSegment } from '../../src/transcription/segment.ts';
import type { Chunk } from '../../src/transcription/speech/chunks.ts';
import { gateOf } from '../gate.ts';

interface Source {
  chunks: AsyncGenerator<Chunk>;
  /** Number of chunks that have been taken from it. */
  taken: number;
  closed: boolean;
}

const chunkAt = (startSec: number): Chunk => {
  const endSec = startSec + 1;
  return { startSec, endSec, silentUntilSec: endSec, samples: new Float32Array(1), speech: [] };
};

function source(count: number, stop: AbortController): Source {
  async function* read() {
    try {
      for (; it.taken < count && !stop.signal.aborted; it.taken += 1) {
        await sleep(1);
        yield chunkAt(it.taken);
      }
    } finally {
      it.closed = true;
    }
  }
  const it: Source = { chunks: read(), taken: 0, closed: false };
  return it;
}

function modelOf(count: number) {
  const asked: number[] = [];
  const info = { lanes: count } as TranscriptionModel['info'];
  const lanes = Array.from({ length: count }, () => ({}) as Lane);
  const lane = async (index: number) => {
    asked.push(index);
    return lanes[index];
  };
  return { model: { info, lane } as unknown as TranscriptionModel, asked };
}

const heardIn = (chunk: Chunk): Recognition => ({
  sentences: [],
  detected: { language: String(chunk.startSec), probability: 1 },
});

const sentence: UnnumberedSegment = {
  seek: 0,
  start: 0,
  end: 1,
  text: ' Yes.',
  words: [],
  temperature: 0,
  avgLogprob: 0,
  compressionRatio: 1,
  noSpeechProb: 0,
  language: 'en',
};

interface Case extends Partial<LaneWork> {
  count: number;
  lanes: number;
}

function start({ count, lanes, ...work }: Case) {
  const stop = new AbortController();
  const from = source(count, stop);
  const { model, asked } = modelOf(lanes);
  let busy = 0;
  const seen = { busiest: 0 };
  const recognize: LaneWork['recognize'] = async (lane, chunk, before) => {
    busy += 1;
    seen.busiest = Math.max(seen.busiest, busy);
    try {
      if (work.recognize) return await work.recognize(lane, chunk, before);
      await sleep(chunk.startSec % 3 === 0 ? 12 : 2);
      return heardIn(chunk);
    } finally {
      busy -= 1;
    }
  };
  const heard = onLanes({ chunks: from.chunks, model, firstAlone: false, stop, ...work, recognize });
  return { heard, from, asked, seen, stop, busy: () => busy };
}

async function starts(heard: AsyncIterable<Pick<ChunkRecognition, 'chunk'>>): Promise<number[]> {
  const all: number[] = [];
  for await (const { chunk } of heard) all.push(chunk.startSec);
  return all;
}

for (const lanes of [1, 2, 4])
  test(`${lanes} chunks run at once, in order, each on a lane of its own`, async () => {
    const working = new Set<Lane>();
    const used = new Set<Lane>();
    const everyLane = gateOf(lanes);
    const { heard, from, seen, busy } = start({
      count: 20,
      lanes,
      recognize: async (lane, chunk) => {
        assert(!working.has(lane), 'two chunks on one lane');
        working.add(lane);
        used.add(lane);
        await everyLane();
        await sleep(chunk.startSec % 3 === 0 ? 12 : 2);
        working.delete(lane);
        return heardIn(chunk);
      },
    });
    assert.deepEqual(
      await starts(heard),
      Array.from({ length: 20 }, (_, i) => i),
    );
    assert.deepEqual([seen.busiest, used.size, busy(), from.closed], [lanes, lanes, 0, true]);
  });

test('one chunk asks for no second lane', async () => {
  const { heard, asked } = start({ count: 1, lanes: 4 });
  assert.deepEqual(await starts(heard), [0]);
  assert.deepEqual(asked, [0]);
});

test('the next chunk is prepared while one is worked on, and only a few are', async () => {
  for (const lanes of [1, 3]) {
    const { heard, from } = start({ count: 50, lanes });
    await heard.next();
    for (let ms = 0; from.taken <= lanes && ms < 5000; ms += 5) await sleep(5);
    await sleep(20); // a consumer that asks for no more gets no more
    assert(from.taken >= lanes + 1 && from.taken <= 8 * lanes + 1, `${from.taken} taken for ${lanes} lanes`);
    await heard.return(undefined);
  }
});

test('no lane waits long for a chunk that takes several times as long as the others', async () => {
  const slow = gateOf(1 + 14);
  const { heard } = start({
    count: 20,
    lanes: 2,
    recognize: async (_lane, chunk) => {
      if (chunk.startSec === 0) await slow();
      else if (chunk.startSec < 15) void slow(); // the slow one ends only when 14 others had their turn
      return heardIn(chunk);
    },
  });
  assert.equal((await starts(heard)).length, 20);
});

test('the audio of a chunk is given back with its text', async () => {
  const { heard } = start({ count: 3, lanes: 1 });
  for await (const { chunk } of heard) assert(!('samples' in chunk));
});

test('the slowest speech that had all its text is told to the chunks after it', async () => {
  const paces: number[] = [];
  const { heard } = start({
    count: 4,
    lanes: 2,
    recognize: async (_lane, chunk, before) => {
      paces[chunk.startSec] = (await before).slowestPace;
      const completePace = [undefined, 2.5, 3][chunk.startSec];
      return { ...heardIn(chunk), ...(completePace !== undefined && { completePace }) };
    },
  });
  await starts(heard);
  assert.deepEqual(paces, [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 2.5, 2.5]);
});

test('the first chunk runs alone, and no other begins before it is done', async () => {
  let first = false;
  const { heard } = start({
    count: 6,
    lanes: 3,
    firstAlone: true,
    recognize: async (_lane, chunk) => {
      assert(first || chunk.startSec === 0);
      await sleep(10);
      first = true;
      return heardIn(chunk);
    },
  });
  assert.equal((await starts(heard)).length, 6);
});

test('each chunk may wait for the languages of all those before', async () => {
  const { heard } = start({
    count: 8,
    lanes: 3,
    recognize: async (_lane, chunk, before) => {
      const { last, share } = (await before).languages;
      assert.equal(last?.language, chunk.startSec === 0 ? undefined : String(chunk.startSec - 1));
      const earlier = Array.from({ length: chunk.startSec }, (_, i) => share(String(i)));
      assert(earlier.every((part) => part > 0));
      assert.equal(share(String(chunk.startSec)), 0);
      return { ...heardIn(chunk), sentences: [sentence] };
    },
  });
  assert.equal((await starts(heard)).length, 8);
});

test('a failure is thrown in its turn, after the results before it, and when no lane works any more', async () => {
  const { heard, from, busy, stop } = start({
    count: 20,
    lanes: 3,
    recognize: async (_lane, chunk) => {
      if (chunk.startSec === 4) throw new Error('broken');
      await sleep(10);
      return heardIn(chunk);
    },
  });
  const before: number[] = [];
  await assert.rejects(async () => {
    for await (const { chunk } of heard) before.push(chunk.startSec);
  }, /broken/);
  assert.deepEqual(before, [0, 1, 2, 3]);
  assert.deepEqual([busy(), from.closed, stop.signal.aborted], [0, true, true]);
});

test('a source that fails gives the results before it, then its error', async () => {
  async function* chunks() {
    yield chunkAt(0);
    yield chunkAt(1);
    throw new Error('cannot be decoded');
  }
  const { heard, busy } = start({ count: 0, lanes: 2, chunks: chunks() });
  const before: number[] = [];
  await assert.rejects(async () => {
    for await (const { chunk } of heard) before.push(chunk.startSec);
  }, /cannot be decoded/);
  assert.deepEqual([before, busy()], [[0, 1], 0]);
});

test('a consumer that leaves stops the work, and waits for its end', async () => {
  const both = gateOf(2);
  const { heard, from, busy, stop } = start({
    count: 20,
    lanes: 2,
    recognize: async (_lane, chunk) => {
      await both();
      // An engine takes a moment to stop.
      if (chunk.startSec > 0) await sleep(60_000, undefined, { signal: stop.signal }).catch(() => sleep(20));
      return heardIn(chunk);
    },
  });
  for await (const { chunk } of heard) {
    assert.equal(chunk.startSec, 0);
    break;
  }
  assert.deepEqual([busy(), from.closed, stop.signal.aborted], [0, true, true]);
});
