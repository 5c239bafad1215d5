/** What three hours of speakers take, over scripted voices. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { createDiarization } from '../../src/transcription/speakers/diarization.ts';
import { blocksOf, conversation, inTurns, scriptedVoices } from '../voices.ts';

test('three hours take memory for their windows, and never compare all of their voices', async () => {
  const hours = 3;
  const model = scriptedVoices();
  const options = {
    clustering: {
      maxPoints: BUDGETS.speakers.maxPoints,
      count: { min: 1, max: 20 },
    },
    known: [],
    signal: new AbortController().signal,
  };
  const diarization = createDiarization(model, options);
  // One half of a minute over and over, as blocks are made, so that the test itself holds no 3 h either.
  const half = blocksOf(conversation(inTurns(4, 30), 30), 160_000);
  for (let i = 0; i < hours * 120; i += 1) for (const block of half) await diarization.push(block);
  const turns = await diarization.finish();
  assert.deepEqual([...new Set(turns.map(({ speaker }) => speaker))].sort(), ['A', 'B', 'C', 'D']);
  assert(model.longest.segmentation <= 480_000 && model.longest.embeddings <= 480_000);
  assert(model.calls.windows < (hours * 3600) / 2.4, `${model.calls.windows} windows`);
  // What stays of a window: a byte for each frame, and 192 numbers of 4 bytes for each voice and each piece of it.
  const bytes = model.calls.windows * 589 + model.calls.voices * 192 * 4;
  assert(bytes < 32 * 1024 * 1024, `${bytes} bytes`);
});
