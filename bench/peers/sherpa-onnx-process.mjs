/**
 * Runs `sherpa-onnx-node` behind JSON lines. It is plain JavaScript, because a loader for TypeScript would count as
 * its memory.
 *
 *   node sherpa-onnx-process.mjs PACKAGE-FOLDER '{"encoder":PATH,"decoder":PATH,"tokens":PATH}' THREADS
 */
import { createRequire } from 'node:module';
import { answerLines } from './json-lines-answers.mjs';

const [folder, weights, threads] = process.argv.slice(2);
const sherpa = createRequire(import.meta.url)(folder);
const { encoder, decoder, tokens } = JSON.parse(weights);

let recognizer = load('en');
let loaded = 'en';

/** The language is fixed at the load; an empty one is detected. */
function load(language) {
  return new sherpa.OfflineRecognizer({
    featConfig: { sampleRate: 16_000, featureDim: 80 },
    modelConfig: {
      whisper: { encoder, decoder, language, task: 'transcribe', tailPaddings: -1 },
      tokens,
      numThreads: Number(threads),
      provider: 'cpu',
      debug: 0,
    },
  });
}

await answerLines(async ({ audio, language }) => {
  const wanted = language === 'auto' ? '' : language;
  if (wanted !== loaded) recognizer = load(wanted);
  loaded = wanted;
  const begin = performance.now();
  const wave = sherpa.readWave(audio);
  const stream = recognizer.createStream();
  stream.acceptWaveform({ sampleRate: wave.sampleRate, samples: wave.samples });
  recognizer.decode(stream);
  const { text } = recognizer.getResult(stream);
  const wallMs = performance.now() - begin;
  return { wallMs, firstMs: wallMs, text: text.trim() };
});
