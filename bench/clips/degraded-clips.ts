/**
 * Makes clips harder to hear: soft, over the telephone, far away, in noise, among other voices. A clip comes out the
 * same at every run, because its noise is seeded with its name.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { wav } from '../../test/wav.ts';
import { seededRandom, seedOf } from '../common/random.ts';
import {
  addAt,
  decoded,
  energyOf,
  ffmpeg,
  floatsOf,
  HEADER_BYTES,
  RATE,
  rms,
  scaled,
  wavSamples,
} from '../common/samples.ts';
import { CLIP_FOLDER, type Clip, storedClip } from './clips.ts';
import { PROMPT_LANGUAGES, type Prompt, prompts } from './prompts.ts';

const BABBLING_VOICES = 6;
const REVERBERATION_SEC = 0.5;

/** @param decibels how much softer; 16-bit samples are rounded as a recorder would round them */
export function quieter<Heard extends Clip>(clip: Heard, decibels: number): Heard {
  return degraded(clip, `quiet-${decibels}dB`, () => scaled(samplesOf(clip), 10 ** (-decibels / 20)));
}

/** Says it more slowly, at the same pitch. @param tempo of 1, from 0.5 */
export function slower(prompt: Prompt, tempo: number): Prompt {
  return degraded(prompt, `slow-${tempo.toFixed(2)}`, () =>
    floatsOf(decoded(['-i', prompt.audio, '-af', `atempo=${tempo}`])),
  );
}

/** Adds white noise. @param snrDb power of the whole clip over that of the noise */
export function withWhiteNoise(prompt: Prompt, snrDb: number): Prompt {
  return degraded(prompt, `white-${snrDb}dB`, () => {
    const speech = samplesOf(prompt);
    return mixed(speech, whiteNoise(speech.length, seedOf(prompt.name)), snrDb);
  });
}

/** Adds the voices of other languages, all at once. @param snrDb power of the whole clip over that of the voices */
export function withBabble(prompt: Prompt, snrDb: number): Prompt {
  return degraded(prompt, `babble-${snrDb}dB`, () => {
    const speech = samplesOf(prompt);
    return mixed(speech, babble(speech.length, prompt), snrDb);
  });
}

/** Sends the clip through G.711 at 8 kHz, in µ-law, as a telephone line does. */
export function overTelephone(prompt: Prompt): Prompt {
  return degraded(prompt, 'telephone', () => throughTelephone(prompt.audio));
}

/** The samples of a file behind a telephone line. */
export function throughTelephone(audio: string): Float32Array {
  const coded = ffmpeg(['-i', audio, '-ar', '8000', '-f', 'mulaw', '-']);
  return floatsOf(decoded(['-f', 'mulaw', '-ar', '8000', '-ac', '1', '-i', '-'], coded));
}

/**
 * Puts the speaker into the far end of a room: a tail of noise that falls by 60 dB in half a second, as strong as the
 * voice itself (Polack's model of late reverberation), and 20 dB softer.
 */
export function fromFarAway(prompt: Prompt): Prompt {
  return degraded(prompt, 'distant', () => {
    const speech = samplesOf(prompt);
    const room = join(CLIP_FOLDER, 'room.wav');
    if (!existsSync(room))
      writeFileSync(room, wav(roomResponse({ seconds: REVERBERATION_SEC, decibels: 0, seed: 1 })));
    const heard = echoing(prompt.audio, room);
    return scaled(heard, (0.1 * rms(speech)) / rms(heard));
  });
}

/** The samples of a file as they sound in a room. @param room a wav with what the room makes of a click */
export function echoing(audio: string, room: string): Float32Array {
  return floatsOf(decoded(['-i', audio, '-i', room, '-filter_complex', '[0][1]afir=gtype=none']));
}

/** Adds noise of the given power and scales both down where they would be clipped. Samples are from -1 to 1. */
export function mixed(speech: Float32Array, noise: Float32Array, snrDb: number): Float32Array {
  const gain = rms(speech) / rms(noise) / 10 ** (snrDb / 20);
  const sum = speech.map((sample, i) => sample + gain * (noise[i] ?? 0));
  const peak = sum.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  return peak > 1 ? scaled(sum, 1 / peak) : sum;
}

function degraded<Heard extends Clip>(clip: Heard, how: string, samples: () => Float32Array): Heard {
  const bytes = () => wav(samples()).subarray(HEADER_BYTES);
  return { ...clip, ...storedClip(`${clip.name}-${how}`, bytes, ''), text: clip.text };
}

function babble(length: number, { name, spoken }: Prompt): Float32Array {
  const random = seededRandom(seedOf(name));
  const sum = new Float32Array(length);
  const others = PROMPT_LANGUAGES.filter((language) => language !== spoken);
  for (let voice = 0; voice < BABBLING_VOICES; voice += 1) {
    const said = voices(others[voice % others.length] ?? 'en');
    for (let at = -Math.floor(random() * RATE); at < length; ) {
      const samples = samplesOf(said[Math.floor(random() * said.length)] as Prompt);
      // Each voice is equally loud, or one would be understood.
      const level = 0.1 / rms(samples);
      addAt(sum, samples, at, level);
      at += samples.length;
    }
  }
  return sum;
}

const known = new Map<string, Prompt[]>();
function voices(language: string): Prompt[] {
  const found = known.get(language) ?? prompts(language);
  known.set(language, found);
  return found;
}

/**
 * What a room makes of a click.
 * @param seconds until the echo has fallen by 60 dB
 * @param decibels of the echo over the voice itself
 */
export function roomResponse(room: { seconds: number; decibels: number; seed: number }): Float32Array {
  const length = Math.round(room.seconds * RATE);
  const tail = whiteNoise(length, room.seed).map((sample, i) => sample * 10 ** ((-3 * i) / length));
  const power = Math.sqrt(energyOf(tail));
  const response = scaled(tail, (0.5 * 10 ** (room.decibels / 20)) / power);
  response[0] = 0.5;
  return response;
}

function whiteNoise(length: number, seed: number): Float32Array {
  const random = seededRandom(seed);
  return Float32Array.from({ length }, () => random() * 2 - 1);
}

const samplesOf = ({ audio }: Clip) => floatsOf(wavSamples(audio));
