/** Makes the page of `npm run bench -- gpu` from what its steps found. */
import type { Token } from '../../src/engine/types.ts';
import type { ModelTimes } from '../common/engine.ts';
import { markdownTable, tableOf } from '../common/page.ts';

export interface Gpu {
  name: string;
  memory: string;
  capability: string;
  driver: string;
}

/** How a model ran on one device. */
export interface DeviceRun extends Omit<ModelTimes, 'tokens'> {
  tokens: Pick<Token, 'id' | 'logprob'>[];
}

export interface ModelRuns {
  model: string;
  cpu: DeviceRun;
  gpu: DeviceRun;
}

export interface StepResult {
  title: string;
  /** Null where the step did what it should; else why it did not. */
  failure: string | null;
  seconds: number;
}

export interface Findings {
  /** What is known of the machine and the programs: a name and a value each. */
  facts: [string, string][];
  steps: StepResult[];
  models: ModelRuns[];
  /** What `npm run bench` wrote. */
  comparisons: string;
}

/** The fields that `parseGpus` expects of nvidia-smi. */
export const GPU_QUERY = 'name,memory.total,compute_cap,driver_version';

export function parseGpus(csv: string): Gpu[] {
  return csv
    .trim()
    .split('\n')
    .map((line) => line.split(',').map((field) => field.trim()))
    .filter((fields) => fields.length === GPU_QUERY.split(',').length)
    .map(([name = '', memory = '', capability = '', driver = '']) => ({ name, memory, capability, driver }));
}

/** Compares up to the first token that differs, because what follows another token is another text. */
export function agreement({ cpu, gpu }: Pick<ModelRuns, 'cpu' | 'gpu'>): { same: number; worst: number } {
  const differs = cpu.tokens.findIndex(({ id }, i) => gpu.tokens[i]?.id !== id);
  const same = differs < 0 ? cpu.tokens.length : differs;
  const differences = cpu.tokens
    .slice(0, same)
    .map(({ logprob }, i) => Math.abs(logprob - (gpu.tokens[i]?.logprob ?? Number.NaN)));
  return { same, worst: Math.max(0, ...differences) };
}

/** Why a program failed, by what it wrote, in one cell of a table and without the folders of this machine. */
export function reasonOf(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^== .*: failed$/.test(line));
  // A stack stands behind the message of an exception.
  const thrown = lines.findLast((line) => /^(\w*Error|voxgate): /.test(line));
  return (thrown ?? (lines.slice(-2).join(' ') || 'it said nothing'))
    .replaceAll(/(\/[^\s/:'"]+)+\/([^\s/:'"]+)/g, '$2')
    .replaceAll('|', '\\|')
    .slice(0, 300);
}

export function gpuPage({ facts, steps, models, comparisons }: Findings): string {
  const stepTable = tableOf(steps, {
    step: ({ title }) => title,
    result: ({ failure }) => (failure === null ? 'done' : `not done: ${failure}`),
    time: ({ seconds }) => `${seconds.toFixed(0)} s`,
  });
  const modelTable = tableOf(models, {
    model: ({ model }) => model,
    'same tokens of CPU and GPU': ({ cpu, gpu }) =>
      `${agreement({ cpu, gpu }).same} of ${cpu.tokens.length} and ${gpu.tokens.length}`,
    'worst difference of a log probability': (runs) => agreement(runs).worst.toFixed(4),
    'CPU ms': ({ cpu }) => cpu.transcribeMs.toFixed(0),
    'GPU ms': ({ gpu }) => gpu.transcribeMs.toFixed(0),
    ratio: ({ cpu, gpu }) => (cpu.transcribeMs / gpu.transcribeMs).toFixed(2),
    'load ms, GPU': ({ gpu }) => gpu.loadMs.toFixed(0),
  });
  return [
    '# voxgate on a GPU',
    markdownTable(['', ''], facts),
    stepTable,
    ...(models.length === 0 ? [] : ['11 s of speech:', modelTable]),
    ...(comparisons.trim() === '' ? [] : [comparisons.trim()]),
  ].join('\n\n');
}
