/**
 * Lets one model hear the same audio on the CPU and on the GPU, in a process of its own: what ends it is one step of the
 * report (bench/gpu/report.ts).
 *
 *   node --import tsx bench/gpu/model.ts FAMILY FILE [FILE_FOR_THE_GPU]     answers in JSON
 */
import { loadNative } from '../../src/engine/addon.ts';
import { timeModel } from '../common/engine.ts';

const ROUNDS = 5;

const [family, cpuFile, gpuFile = cpuFile] = process.argv.slice(2);
if (family === undefined || cpuFile === undefined || gpuFile === undefined)
  throw new Error('Expected a family and the path of a model');
const engine = loadNative(undefined, { gpus: true });
process.stdout.write(
  JSON.stringify({
    cpu: await timeModel(engine, { family, path: cpuFile, device: 'cpu' }, ROUNDS),
    gpu: await timeModel(engine, { family, path: gpuFile, device: 'cuda:0' }, ROUNDS),
  }),
);
