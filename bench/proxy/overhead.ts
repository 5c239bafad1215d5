/**
 * Measures the cost of a transcription beside inference: a request of an 11 s wav through HTTP, less the time that
 * voice activity and recognition of the same samples take in this process, in turns.
 *
 *   npm run bench -- overhead [--rounds 25]
 */
import { join } from 'node:path';
import { readConfig } from '../../src/config/config.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { contextFor } from '../../src/transcription/decoding.ts';
import { JFK } from '../../test/wav.ts';
import { fileClip } from '../clips/clips.ts';
import { GREEDY_TEXT } from '../common/engine.ts';
import { startGatewayProcess } from '../common/gateway.ts';
import { median } from '../common/numbers.ts';
import { numberOptions } from '../common/options.ts';
import { floatsOf, wavSamples } from '../common/samples.ts';
import { transcribe } from '../peers/upload.ts';
import { ggmlBase } from '../peers/whisper-cpp.ts';

const { rounds } = numberOptions({ rounds: 25 });
const { audio, seconds } = fileClip(JFK, null);
const samples = floatsOf(wavSamples(audio));
const { threads, modelDir } = readConfig().config;
const engine = loadNative();
const model = await engine.loadModel({ family: 'whisper', path: ggmlBase(), device: 'cpu', threads });
const voiceActivity = await engine.loadVoiceActivity({ path: join(modelDir, 'ggml-silero-v6.2.0.bin') });
await using gateway = await startGatewayProcess();

const overHttp: number[] = [];
const inside: number[] = [];
for (let round = -1; round < rounds; round += 1) {
  const { wallMs } = await transcribe(gateway.base, audio, { model: 'multilingual-base', language: 'en' });
  const begin = performance.now();
  await voiceActivity.probabilities(samples, { reset: true });
  await model.transcribe(samples, {
    ...GREEDY_TEXT,
    audioContext: contextFor(seconds, model.info.audioContext),
  });
  const tookMs = performance.now() - begin;
  if (round < 0) continue; // this round loads the model
  overHttp.push(wallMs);
  inside.push(tookMs);
}
const [whole, inference] = [median(overHttp), median(inside)];
process.stdout.write(
  `${rounds} rounds: ${whole.toFixed(0)} ms through HTTP, ${inference.toFixed(0)} ms of it voice activity and recognition, ${(whole - inference).toFixed(1)} ms all else\n`,
);
await model.close();
await voiceActivity.close();
