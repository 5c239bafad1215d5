/**
 * Machine voices speak many sentences with a known text, because the recorded clips are too few to tell word error
 * rates apart. The first thirty are Harvard sentences (IEEE Recommended Practice for Speech Quality Measurements,
 * 1969), the others are sentences that one says to a device.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../common/machine.ts';
import { samplesOf } from '../common/samples.ts';
import { type Clip, storedClip } from './clips.ts';

/** These voices of flite are recorded speakers: two men and a woman (CMU ARCTIC). */
const VOICES = ['rms', 'awb', 'slt'];

/** Gives no clip, and prints why, where flite is not installed. */
export function voiceClips(): Clip[] {
  const sentences = readFileSync(join(ROOT, 'bench/clips/sentences.txt'), 'utf8').trim().split('\n');
  try {
    return VOICES.flatMap((voice) => sentences.map((text, i) => voiceClip(voice, i + 1, text)));
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim() : String(error);
    process.stderr.write(`Without machine voices (on Debian: apt-get install flite): ${reason}\n`);
    return [];
  }
}

function voiceClip(voice: string, number: number, text: string): Clip {
  const name = `${voice}-${number}`;
  return storedClip(name, () => spoken(voice, name, text), text);
}

function spoken(voice: string, name: string, text: string): Buffer {
  const path = join(ROOT, `build/bench-clips/${name}-spoken.wav`);
  execFileSync('flite', ['-voice', voice, '-t', text, '-o', path], { stdio: ['ignore', 'ignore', 'pipe'] });
  return samplesOf(path);
}
