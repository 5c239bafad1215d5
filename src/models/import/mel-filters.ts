/**
 * The Slaney mel filterbank that Whisper was trained with: 16 kHz, 400-point FFT, area-normalized triangles, as
 * librosa.filters.mel computes it. Steps and rounding follow librosa, so that the bytes are the same.
 */

const SAMPLE_RATE = 16_000;
const FFT_SIZE = 400;
export const FFT_BINS = FFT_SIZE / 2 + 1;

const LINEAR_STEP = 200 / 3;
const LOG_START_HZ = 1000;
const LOG_START_MEL = LOG_START_HZ / LINEAR_STEP;
const LOG_STEP = Math.log(6.4) / 27;

function hzToMel(hz: number): number {
  return hz >= LOG_START_HZ ? LOG_START_MEL + Math.log(hz / LOG_START_HZ) / LOG_STEP : hz / LINEAR_STEP;
}

function melToHz(mel: number): number {
  return mel >= LOG_START_MEL ? LOG_START_HZ * Math.exp(LOG_STEP * (mel - LOG_START_MEL)) : LINEAR_STEP * mel;
}

/** The filterbank as `bands` rows of 201 values. */
export function melFilters(bands: number): Float32Array {
  const top = hzToMel(SAMPLE_RATE / 2);
  // The last edge must be exactly the top, although the sum of the steps may differ from it.
  const edges = Array.from({ length: bands + 2 }, (_, i) =>
    melToHz(i > bands ? top : i * (top / (bands + 1))),
  );
  const filters = new Float32Array(bands * FFT_BINS);
  for (let band = 0; band < bands; band++) {
    const [low, center, high] = [edges[band] ?? 0, edges[band + 1] ?? 0, edges[band + 2] ?? 0];
    const area = 2 / (high - low);
    for (let bin = 0; bin < FFT_BINS; bin++) {
      const hz = (bin * SAMPLE_RATE) / FFT_SIZE;
      const rising = -(low - hz) / (center - low);
      const falling = (high - hz) / (high - center);
      const slope = Math.min(rising, falling);
      // Math.max would not do: the first value is a negative zero in every published file.
      filters[band * FFT_BINS + bin] = (slope < 0 ? 0 : Math.fround(slope)) * area;
    }
  }
  return filters;
}
