/** Of two channels the one without a voice is silenced, and only beside one that has a voice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutVoiceless } from '../../src/transcription/speech/voiceless-channel.ts';

const WINDOW = 512;
const BLOCK = 40 * WINDOW;

/** Sounds of which the voice activity model below knows the first as a voice. */
const sound = (hertz: number, level = 0.1) =>
  Float32Array.from({ length: BLOCK }, (_, i) => level * Math.sin((2 * Math.PI * hertz * i) / 16_000));
const VOICE = sound(200);
const TIMECODE = sound(1000, 0.3);
const OTHER_VOICE = sound(180);
const SILENCE = new Float32Array(BLOCK);

const crossings = (samples: Float32Array) =>
  samples.reduce((count, sample, i) => count + Number(sample > 0 !== (samples[i - 1] ?? 0) > 0), 0);

let searched = 0;
const vad = {
  async probabilities(samples: Float32Array, options: { reset: boolean; apart?: boolean }) {
    assert(options.apart);
    searched += 1;
    const isVoice = crossings(samples) > 0 && crossings(samples) < (2 * 300 * BLOCK) / 16_000;
    return new Float32Array(samples.length / WINDOW).fill(isVoice ? 0.9 : 0.05);
  },
  close: async () => undefined,
};

/** @returns what is heard of pairs of channels, each a block */
async function heard(pairs: [left: Float32Array, right: Float32Array][]): Promise<Float32Array[]> {
  let at = 0;
  const audio = {
    async *blocks() {
      for (const [left, right] of pairs) {
        at += 1;
        yield left.map((sample, i) => (sample + (right[i] as number)) / 2);
      }
    },
    get sides() {
      const [left, right] = pairs[at - 1] as [Float32Array, Float32Array];
      return left.map((sample, i) => (sample - (right[i] as number)) / 2);
    },
  };
  const blocks: Float32Array[] = [];
  for await (const block of withoutVoiceless(audio, vad, new AbortController().signal)) blocks.push(block);
  return blocks;
}

function assertHeard(block: Float32Array | undefined, ...channels: Float32Array[]): void {
  assert(block);
  const wanted = block.map((_, i) => channels.reduce((sum, channel) => sum + (channel[i] as number) / 2, 0));
  const off = block.reduce((most, sample, i) => Math.max(most, Math.abs(sample - (wanted[i] as number))), 0);
  assert(off < 1e-6, `${off}`);
}

test('a timecode beside a voice is silenced, on either channel, and while the voice pauses', async () => {
  for (const isLeft of [true, false]) {
    const pair = (voice: Float32Array): [Float32Array, Float32Array] =>
      isLeft ? [TIMECODE, voice] : [voice, TIMECODE];
    const blocks = await heard([pair(VOICE), pair(sound(3000, 0.01)), pair(VOICE)]);
    assertHeard(blocks[0], VOICE);
    assertHeard(blocks[1], sound(3000, 0.01));
    assertHeard(blocks[2], VOICE);
  }
});

test('two voices are both heard, as is a channel that begins to speak', async () => {
  const blocks = await heard([
    [VOICE, OTHER_VOICE],
    [VOICE, TIMECODE],
    [VOICE, OTHER_VOICE],
    [TIMECODE, OTHER_VOICE],
  ]);
  assertHeard(blocks[0], VOICE, OTHER_VOICE);
  assertHeard(blocks[1], VOICE);
  assertHeard(blocks[2], VOICE, OTHER_VOICE);
  assertHeard(blocks[3], OTHER_VOICE);
});

test('ordinary stereo, and a channel beside silence, are not even searched', async () => {
  searched = 0;
  const wide = VOICE.map((sample, i) => 0.7 * sample + 0.2 * (TIMECODE[i] as number));
  const pairs: [Float32Array, Float32Array][] = [
    [VOICE, VOICE],
    [VOICE, wide],
    [VOICE, VOICE.map((sample) => -sample)],
    [VOICE, SILENCE],
    [SILENCE, SILENCE],
  ];
  for (const [i, block] of (await heard(pairs)).entries())
    assertHeard(block, ...(pairs[i] as [Float32Array, Float32Array]));
  assert.equal(searched, 0);
});
