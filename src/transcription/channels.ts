/**
 * Calls that are recorded with one person on each channel. Each channel is transcribed by itself, so it is known who
 * speaks, also where both speak at once. The channels are heard one after the other, because a network for voice
 * activity follows one sound at a time; only their text is kept until it can be put in order. Pure.
 */
import type { Channel } from '../audio/decoder.ts';
import type { UnnumberedSegment } from './segment.ts';

/** What the speakers of the left and of the right channel are called. */
export type ChannelLabels = readonly [left: string, right: string];

/** The segments of both channels by their start, each with the speaker of its channel. */
export async function* mergeChannels(
  labels: ChannelLabels,
  segmentsOf: (channel: Channel) => AsyncIterable<UnnumberedSegment>,
): AsyncGenerator<UnnumberedSegment, void, undefined> {
  const all: UnnumberedSegment[] = [];
  for (const channel of [0, 1] as const) {
    const speaker = labels[channel];
    for await (const segment of segmentsOf(channel))
      all.push({ ...segment, speaker, words: segment.words.map((word) => ({ ...word, speaker })) });
  }
  yield* all.sort((a, b) => a.start - b.start || a.end - b.end);
}
