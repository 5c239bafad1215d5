/** Morse code as sound. */

/** Written out here too: a table that the decoder shares could not show a mistake in it. */
const CODES = 'D-.. E. H.... L.-.. O--- R.-. S... W.-- ..-.-.-'.split(' ');
const UNIT_SAMPLES = 0.06 * 16_000;

/** 16 kHz mono from -1 to 1. A unit of time lasts 60 ms. */
export function keyed(text: string, toneHz = 700): Float32Array {
  const codeOf = (letter: string) => CODES.find((code) => code.startsWith(letter))?.slice(1) ?? '';
  const marks = (letter: string) => [...codeOf(letter)].map((mark) => (mark === '.' ? '10' : '1110'));
  const units = [...text].map((c) => (c === ' ' ? '0000' : `${marks(c).join('')}00`)).join('');
  return Float32Array.from({ length: units.length * UNIT_SAMPLES }, (_, i) =>
    units[Math.floor(i / UNIT_SAMPLES)] === '1' ? 0.5 * Math.sin((2 * Math.PI * toneHz * i) / 16_000) : 0,
  );
}
