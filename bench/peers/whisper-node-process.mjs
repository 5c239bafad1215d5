/**
 * Runs `@fugood/whisper.node` behind JSON lines. It is plain JavaScript, because a loader for TypeScript would count
 * as its memory.
 *
 *   node whisper-node-process.mjs PACKAGE-FOLDER WEIGHTS THREADS
 */
import { createRequire } from 'node:module';
import { answerLines } from './json-lines-answers.mjs';

const [folder, weights, threads] = process.argv.slice(2);
const { initWhisper } = createRequire(import.meta.url)(folder);
const context = await initWhisper({ filePath: weights, useGpu: false, useFlashAttn: true });

await answerLines(async ({ audio, language }) => {
  const begin = performance.now();
  let firstMs;
  const { promise } = context.transcribeFile(audio, {
    language,
    maxThreads: Number(threads),
    onNewSegments: () => {
      firstMs ??= performance.now() - begin;
    },
  });
  const { result } = await promise;
  const wallMs = performance.now() - begin;
  return { wallMs, firstMs: firstMs ?? wallMs, text: result.trim() };
});
await context.release();
