/**
 * Lets one model hear the same audio on the CPU and on the GPU, in a process of its own: what ends it is one step of the
 * report (bench/gpu/report.ts).
 *
 *   node --import tsx bench/gpu/model.ts FAMILY FILE [FILE_FOR_THE_GPU]     answers in JSON
 */
import { readConfig } from '../../src/config/config.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { SAMPLE } from '../clips/clips.ts';
import { median, samplesOf } from '../common/gateway.ts';
import type { DeviceRun } from './page.ts';

const ROUNDS = 5;

const [family, cpuFile, gpuFile = cpuFile] = process.argv.slice(2);
if (family === undefined || cpuFile === undefined || gpuFile === undefined)
  throw new Error('Expected a family and the path of a model');
const pcm = samplesOf(SAMPLE);
const samples = Float32Array.from({ length: pcm.length / 2 }, (_, i) => pcm.readInt16LE(2 * i) / 32768);
const engine = loadNative(undefined, { gpus: true });
const runs = { cpu: await run('cpu', cpuFile), gpu: await run('cuda:0', gpuFile) };
process.stdout.write(JSON.stringify(runs));

async function run(device: string, path: string): Promise<DeviceRun> {
  const begin = performance.now();
  const { threads } = readConfig().config;
  const model = await engine.loadModel({ family: family ?? '', path, device, threads });
  const loadMs = performance.now() - begin;
  const times: number[] = [];
  let tokens: DeviceRun['tokens'] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const begin = performance.now();
    const segments = await model.transcribe(samples.subarray(0, 11 * 16_000), {
      language: 'en',
      translate: false,
      prompt: '',
      temperature: 0,
      audioContext: 640,
      maxTokens: 30,
      beams: 1,
      times: true,
      words: false,
      again: false,
    });
    if (round > 0) times.push(performance.now() - begin); // the first one warms up
    tokens = segments.flatMap((segment) => segment.tokens.map(({ id, logprob }) => ({ id, logprob })));
  }
  await model.close();
  return { loadMs, transcribeMs: median(times), tokens };
}
