/** The segments of two channels become one list in the order of time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeChannels } from '../../src/transcription/channels.ts';

test('segments of both channels are ordered by their start, and of two that begin at once the shorter is first', async () => {
  const spans = [
    [[0, 9], [10, 12]], // biome-ignore format: a row of spans
    [[1, 3], [4, 5], [10, 11]], // biome-ignore format: a row of spans
  ] as const;
  async function* segmentsOf(channel: 0 | 1) {
    for (const [start, end] of spans[channel]) yield { start, end, words: [{ start, end }] } as never;
  }
  const merged: unknown[] = [];
  for await (const { speaker, start, end, words } of mergeChannels(['L', 'R'], segmentsOf))
    merged.push([speaker, words[0]?.speaker, start, end]);
  assert.deepEqual(merged, [
    ['L', 'L', 0, 9],
    ['R', 'R', 1, 3],
    ['R', 'R', 4, 5],
    ['R', 'R', 10, 11],
    ['L', 'L', 10, 12],
  ]);
});
