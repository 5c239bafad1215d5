/**
 * A recording of two channels may have speech in one of them and a timecode, a hum or noise in the other, and their
 * average is speech in noise. So where the channels of a block have little in common, each is searched for speech by
 * itself, and one without any is silenced beside one that has some. Where both have speech, as in a call, both are heard.
 */
import type { AudioSource } from '../../audio/open.ts';
import type { VoiceActivityModel } from '../../engine/types.ts';
import { createLeveler, powerOf } from './level.ts';
import { certaintyOf } from './voice-activity.ts';

/** The correlation of channels that have little in common; most of what is recorded in stereo is above it. */
const LITTLE_IN_COMMON = 0.7;
/** A channel that is softer than this, as root mean square, -80 dB, is silent. */
const SILENT = 1e-4;
/** The certainty that a channel without speech stays below, and the one that a channel with speech has. */
const VOICE = { none: 0.35, sure: 0.6 };

/** A channel: half of it is the average of both, plus or minus half of their difference. */
type Sign = 1 | -1;

/** The blocks of a source, in which what has no voice is silenced. */
export async function* withoutVoiceless(
  audio: Pick<AudioSource, 'blocks' | 'sides'>,
  vad: VoiceActivityModel,
  signal: AbortSignal,
): AsyncGenerator<Float32Array, void, undefined> {
  const levelers = { 1: createLeveler(), [-1]: createLeveler() };
  let silenced: Sign | null = null;

  async function surest(block: Float32Array, sides: Float32Array, sign: Sign): Promise<number> {
    const channel = block.map((mid, i) => mid + sign * (sides[i] as number));
    const options = { reset: true, apart: true };
    return certaintyOf(await vad.probabilities(levelers[sign].level(channel), options, { signal }));
  }

  for await (const block of audio.blocks()) {
    const { sides } = audio;
    if (sides && haveLittleInCommon(block, sides)) {
      const [left, right] = [await surest(block, sides, 1), await surest(block, sides, -1)];
      if (Math.max(left, right) >= VOICE.sure) silenced = voiceless(left, right);
      if (silenced !== null)
        for (let i = 0; i < block.length; i += 1)
          block[i] = ((block[i] as number) - silenced * (sides[i] as number)) / 2;
    }
    yield block;
  }
}

function voiceless(left: number, right: number): Sign | null {
  if (Math.min(left, right) >= VOICE.none) return null;
  return left < right ? 1 : -1;
}

/** True where both channels have sound, and hardly the same. */
function haveLittleInCommon(block: Float32Array, sides: Float32Array): boolean {
  const [mid, side] = [powerOf(block), powerOf(sides)];
  let products = 0;
  for (let i = 0; i < block.length; i += 1) products += (block[i] as number) * (sides[i] as number);
  const [left, right] = [mid + side + 2 * products, mid + side - 2 * products];
  if (Math.min(left, right) < SILENT ** 2 * block.length) return false;
  return Math.abs(mid - side) < LITTLE_IN_COMMON * Math.sqrt(left * right);
}
