/**
 * Tells speakers apart with the gateway's own code behind JSON lines, without recognizing a word, so that this alone
 * can be timed. It is plain JavaScript over the build, because a loader for TypeScript would count as its memory.
 *
 *   node speakers-process.mjs WEIGHTS
 */
import { readFileSync } from 'node:fs';
import { loadNative } from '../../dist/engine/addon.js';
import { BUDGETS } from '../../dist/limits/budgets.js';
import { createDiarization } from '../../dist/transcription/speakers/diarization.js';
import { answerLines } from './json-lines-answers.mjs';

/** Half a second, as the gateway decodes its uploads. */
const BLOCK = 8000;
const [path] = process.argv.slice(2);
const model = await loadNative().loadSpeakers({ path });
const { maxPoints, most } = BUDGETS.speakers;

await answerLines(async ({ audio }) => {
  const begin = performance.now();
  const file = readFileSync(audio);
  // The samples are in the last chunk. The one before it may be a comment.
  const bytes = file.subarray(file.indexOf('data') + 8);
  const { signal } = new AbortController();
  const clustering = { count: { min: 1, max: most }, maxPoints };
  const diarization = createDiarization(model, { clustering, known: [], signal });
  for (let at = 0; at < bytes.length / 2; at += BLOCK) {
    const length = Math.min(BLOCK, bytes.length / 2 - at);
    await diarization.push(Float32Array.from({ length }, (_, i) => bytes.readInt16LE(2 * (at + i)) / 32_768));
  }
  const turns = await diarization.finish();
  return { turns, wall_ms: performance.now() - begin };
});
