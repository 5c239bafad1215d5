/**
 * Measures the cost of a transcription beside inference: a request of an 11 s wav through HTTP, less the time that
 * voice activity and recognition of the same samples take in this process, in turns.
 *
 *   npm run bench -- overhead [--rounds 25]
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { readConfig } from '../../src/config/config.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { contextFor } from '../../src/transcription/decoding.ts';
import { fileClip, SAMPLE } from '../clips/clips.ts';
import { median, startGatewayProcess } from '../common/gateway.ts';
import { upload } from '../peers/upload.ts';
import { ggmlBase } from '../peers/whisper-cpp.ts';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '25' } } });
const rounds = Number(values.rounds);
const { audio, seconds } = fileClip(SAMPLE, null);
const { config } = readConfig();
const engine = loadNative();
const model = await engine.loadModel({
  family: 'whisper',
  path: ggmlBase(),
  device: 'cpu',
  threads: config.threads,
});
const voiceActivity = await engine.loadVoiceActivity({
  path: join(config.modelDir, 'ggml-silero-v6.2.0.bin'),
});
await using gateway = await startGatewayProcess();

const request = () =>
  upload(`${gateway.base}/v1/audio/transcriptions`, audio, { model: 'multilingual-base', language: 'en' });

async function readSamples(): Promise<Float32Array> {
  const file = await engine.openAudio(audio, 'wav');
  const samples = await file.read(Math.ceil(seconds) * 16_000);
  file.close();
  return samples ?? new Float32Array();
}

async function recognize(samples: Float32Array): Promise<void> {
  await voiceActivity.probabilities(samples, { reset: true });
  await model.transcribe(samples, {
    language: 'en',
    translate: false,
    prompt: '',
    temperature: 0,
    audioContext: contextFor(seconds, model.info.audioContext),
    maxTokens: 0,
    beams: 1,
    times: true,
    words: false,
    again: false,
  });
}

const samples = await readSamples();
const overHttp: number[] = [];
const inside: number[] = [];
for (let round = -1; round < rounds; round += 1) {
  const { wallMs } = await request();
  const begin = performance.now();
  await recognize(samples);
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
