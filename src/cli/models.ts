/**
 * `voxgate models` lists, fetches, verifies, checks, removes and imports weights. Results go to stdout, so that scripts can
 * read them; progress and failures go to stderr.
 */
import type { Command } from 'commander';
import { inWords } from '../errors.ts';
import { findModel, VOICE_ACTIVITY } from '../models/catalogue.ts';
import { megabytes } from '../models/disk.ts';
import { memoryNeeds, needsInWords } from '../models/memory.ts';
import type { ModelStore, StoredModel, VerifiedFile, WaitOptions } from '../models/store.ts';
import { interruptible } from './interrupt.ts';
import { createProgressView } from './model-progress.ts';
import { assertCheckable, type CheckedClip, check, clipsOf, line, MOST_WORDS_WRONG } from './models-check.ts';
import { examples, table } from './options.ts';
import type { Transcriber } from './question.ts';

export interface ModelsCommandDeps {
  /** `modelId` gives the id that a name stands for, and returns an unknown name as it is. Models have `threads`. */
  open(): Promise<{ store: ModelStore; modelId(name: string): string; threads: number }>;
  /** Starts what transcribes in this process. */
  start(): Promise<Transcriber>;
  /** Tests pass streams of their own; the default is those of the process. */
  stdout?: NodeJS.WritableStream;
  stderr?: NodeJS.WriteStream;
}

/** The exit code is 0 after success, 1 after a failure or bad usage, and 130 after an interrupt. */
export function registerModelsCommand(program: Command, deps: ModelsCommandDeps): void {
  const models = program
    .command('models')
    .description('list, fetch, verify, check, remove and import speech models')
    .addHelpText(
      'after',
      examples(
        'voxgate models list',
        'voxgate models pull multilingual-small',
        'voxgate models import ~/models/faster-whisper-medium',
        'voxgate models verify',
        'voxgate models check european',
        'voxgate models rm multilingual-tiny',
      ),
    );
  const streams = { stdout: process.stdout, stderr: process.stderr, ...deps };
  registerList(models, streams);
  registerPull(models, streams);
  registerVerify(models, streams);
  registerCheck(models, streams);
  registerRemove(models, streams);
  registerImport(models, streams);
}

function registerList(models: Command, { open, stdout }: Required<ModelsCommandDeps>): void {
  models
    .command('list')
    .description('list every model, the memory that each will need, and which are on disk')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => {
      const { store, threads } = await open();
      const list = store.list().map((model) => ({ ...model, memory: memoryOf(model, threads) }));
      stdout.write(
        json ? `${JSON.stringify({ dir: store.dir, models: list }, null, 2)}\n` : listing(store.dir, list),
      );
    });
}

function registerPull(models: Command, { open, stdout, stderr }: Required<ModelsCommandDeps>): void {
  models
    .command('pull')
    .argument('<id>', 'a model id from `voxgate models list`, or an alias')
    .description('fetch a model, even where SVC_MODEL_DOWNLOAD is off')
    .action((name: string) =>
      work(stderr, async (options) => {
        const { store, modelId } = await open();
        const id = modelId(name);
        // Every recognition model needs the voice activity model.
        await store.pull(VOICE_ACTIVITY.id, options);
        const { path } = await store.pull(id, options);
        stdout.write(`${path}\n`);
      }),
    );
}

function registerVerify(models: Command, { open, stdout, stderr }: Required<ModelsCommandDeps>): void {
  models
    .command('verify')
    .argument('[ids...]', 'model ids or aliases (default: all that are on disk)')
    .option('--json', 'print JSON')
    .description(
      'read the weights on disk and compare their hashes; exit status 1 when one is wrong or none is there',
    )
    .action((names: string[], { json }: { json?: true }) =>
      work(stderr, async (options) => {
        const { store, modelId } = await open();
        const ids = names.length > 0 ? names.map(modelId) : store.list().map(({ id }) => id);
        const files: (VerifiedFile & { id: string })[] = [];
        const failures: string[] = [];
        for (const id of ids) {
          const verified = await store.verify(id, options);
          files.push(...verified.map((file) => ({ id, ...file })));
          if (names.length > 0 && verified.length === 0) failures.push(`${id} is not in ${store.dir}`);
        }
        stdout.write(json ? `${JSON.stringify({ files }, null, 2)}\n` : files.map(verdict).join(''));
        const bad = files.filter(({ problem }) => problem !== null);
        if (bad.length > 0)
          failures.push(`${bad.length} of ${files.length} files are not what they should be`);
        if (names.length === 0 && files.length === 0)
          failures.push(`no weights are in ${store.dir}: fetch some with voxgate models pull`);
        if (failures.length > 0) throw new Error(failures.join('; '));
      }),
    );
}

function registerCheck(models: Command, { open, start, stdout, stderr }: Required<ModelsCommandDeps>): void {
  const bound = `${MOST_WORDS_WRONG * 100} %`;
  models
    .command('check')
    .argument('<id>', 'a model id or alias, whose weights are on disk')
    .option(
      '--clips <dir>',
      'audio files, each with its text in a .txt of the same name (default: an English clip)',
    )
    .option('--json', 'print JSON')
    .description(
      `transcribe clips of known texts; exit status 1 when more than ${bound} of the words of one are wrong`,
    )
    .action((name: string, { clips: folder, json }: { clips?: string; json?: true }) =>
      work(stderr, async ({ signal }) => {
        const { store, modelId } = await open();
        const id = modelId(name);
        assertCheckable(id, store);
        const clips = await clipsOf(folder);
        await using transcriber = await start();
        const checked: CheckedClip[] = [];
        for await (const clip of check(id, clips, transcriber, signal)) {
          checked.push(clip);
          if (!json) stdout.write(line(clip));
        }
        if (json) stdout.write(`${JSON.stringify({ model: id, clips: checked }, null, 2)}\n`);
        const wrong = checked.filter(({ wordErrorRate }) => wordErrorRate > MOST_WORDS_WRONG);
        if (wrong.length > 0)
          throw new Error(
            `${id} does not work: of ${wrong.length} of ${checked.length} clips more than ${bound} of the words are wrong`,
          );
      }),
    );
}

function registerRemove(models: Command, { open, stdout, stderr }: Required<ModelsCommandDeps>): void {
  models
    .command('rm')
    .argument('<ids...>', 'model ids or aliases')
    .description('delete weights from disk; exit status 1 when there are none')
    .action((names: string[]) =>
      work(stderr, async (options) => {
        const { store, modelId } = await open();
        for (const id of names.map(modelId)) {
          const removed = await store.remove(id, options);
          if (removed.length === 0) throw new Error(`${id} is not in ${store.dir}`);
          for (const { file, bytes } of removed) stdout.write(`removed ${file} (${megabytes(bytes)})\n`);
        }
      }),
    );
}

function registerImport(models: Command, { open, stdout, stderr }: Required<ModelsCommandDeps>): void {
  models
    .command('import')
    .argument('<dir>', 'folder of a faster-whisper (CTranslate2) model')
    .option('--id <id>', 'which model it is, when the files do not tell (large-v1 or large-v2)')
    .description('import the weights in a faster-whisper folder')
    .action((dir: string, { id: name }: { id?: string }) =>
      work(stderr, async (options) => {
        const { store, modelId } = await open();
        const id = name === undefined ? undefined : modelId(name);
        const imported = await store.import(dir, { ...options, id });
        stdout.write(`${imported.id} ${imported.path}\n`);
      }),
    );
}

/** Runs a task that shows progress. It sets the exit code without exiting, so output is flushed. */
async function work(
  stderr: NodeJS.WriteStream,
  task: (options: WaitOptions & { signal: AbortSignal }) => Promise<void>,
): Promise<void> {
  const view = createProgressView(stderr);
  try {
    await interruptible((signal) => task({ signal, onProgress: view.update }).finally(view.close));
  } catch (error) {
    stderr.write(`${inWords(error)}\n`);
    process.exitCode ||= 1;
  }
}

function verdict({ path, problem }: VerifiedFile): string {
  return problem === null ? `ok     ${path}\n` : `wrong  ${path}: ${problem}\n`;
}

type Listed = StoredModel & { memory: ReturnType<typeof memoryOf> };

/** What a model that transcribes will need on a CPU, and on a GPU; null for other weights. */
function memoryOf({ id, files }: StoredModel, threads: number) {
  const model = findModel(id);
  if (model === undefined) return null;
  const on = (precision: 'q8_0' | 'f16') => memoryNeeds(model, precision, { threads, files });
  return { cpu: on('q8_0'), gpu: on('f16') };
}

function memoryInWords(memory: Listed['memory']): string {
  return Object.entries(memory ?? {})
    .flatMap(([where, needs]) => (needs === null ? [] : `${where.toUpperCase()} ${needsInWords(needs)}`))
    .join(', ');
}

function listing(dir: string, models: readonly Listed[]): string {
  const rows = models.map(({ id, family, memory, installed, bytes, files }) => [
    id,
    family,
    memoryInWords(memory),
    installed ? `${megabytes(bytes)} (${files.map(({ file }) => file).join(', ')})` : 'not installed',
  ]);
  return `${dir}\n${table(rows)}`;
}
