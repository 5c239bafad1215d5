/**
 * Calls that are recorded with one person on each channel. Each channel is transcribed by itself, so it is known who
 * speaks, also where both speak at once. The channels are heard one after the other, because a network for voice
 * activity follows one sound at a time; only their text is kept until it can be put in order. Before that, the levels of
 * both are compared, so that no words are heard on two channels.
 */
import { type Bleed, findBleed, levelsOf } from '../audio/bleed.ts';
import type { Channel } from '../audio/decoder.ts';
import type { AudioSource } from '../audio/open.ts';
import { refuseEqualChannels } from '../audio/refusal.ts';
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

/**
 * Finds where a channel holds only what bleeds from the other one.
 * @param left is read to its end
 * @param openRight is called when the left channel is closed
 * @throws GatewayError where both channels hold the same sound
 */
export async function compareChannels(
  left: AudioSource,
  openRight: () => Promise<AudioSource>,
): Promise<readonly [Bleed, Bleed]> {
  const ofLeft = await levelsOf(left.blocks());
  await using right = await openRight();
  const bleed = await findBleed(ofLeft, await levelsOf(right.blocks()));
  if (bleed === null) throw refuseEqualChannels();
  return bleed;
}
