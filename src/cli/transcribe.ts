/** `voxgate transcribe <files...>` writes down audio files, in this process or with a gateway that runs already. */
import { isatty } from 'node:tty';
import { type Command, InvalidArgumentError } from 'commander';
import pMap from 'p-map';
import type { Config } from '../config/config.ts';
import { inWords } from '../errors.ts';
import type { TranscriptionRequest } from '../transcription/request.ts';
import { showsSpeakers } from '../wire/formats.ts';
import { parseRequest } from '../wire/request.ts';
import type { AudioBar } from './audio-bar.ts';
import { type AudioFile, audioFiles } from './audio-files.ts';
import { interruptible } from './interrupt.ts';
import { examples, toUrl } from './options.ts';
import { BUSY_SEC, type Question, RequestError, STDIN, type Transcriber } from './question.ts';
import { addFieldOptions, type Fields, fieldsIn, formatIn } from './transcribe-fields.ts';
import { createOutputs, type Outputs } from './transcribe-outputs.ts';
import { unreached } from './unreached.ts';

export interface TranscribeDeps {
  config(): Config;
  /** Starts what transcribes in this process. */
  start(config: Config, request: TranscriptionRequest): Promise<Transcriber>;
  stdout?: NodeJS.WritableStream;
  stderr?: NodeJS.WritableStream;
}

interface TranscribeOptions {
  server?: string;
  outputDir?: string;
  overwrite?: true;
  watch?: true;
  jobs: number;
  json?: true;
}

const MOST_JOBS = 64;

/** The exit code is 0 when every file has its text, 1 when one has none, and 130 after an interrupt. */
export function registerTranscribeCommand(program: Command, deps: TranscribeDeps): void {
  const command = program
    .command('transcribe')
    .description('transcribe audio files; exit status 1 when one of them fails')
    .addHelpText(
      'after',
      examples(
        'voxgate transcribe talk.mp3',
        'ffmpeg -i talk.mov -f wav - | voxgate transcribe -',
        'voxgate transcribe --response-format srt --output-dir texts recordings/',
        'voxgate transcribe --server http://127.0.0.1:8000 --diarize --jobs 2 *.wav',
        'voxgate transcribe --speaker Ann=ann.wav --response-format diarized_json call.wav',
      ),
    )
    .argument('<files...>', 'audio files, or folders of them, or - for stdin')
    .option('--server <url>', 'send the files to this gateway (default: transcribe in this process)', toUrl)
    .option('--output-dir <dir>', 'write one transcript per file here, and skip files that have one')
    .option('--overwrite', 'write transcripts again that are already there')
    .option('--watch', 'keep watching the folders for new files; Ctrl-C ends')
    .option('--jobs <n>', 'how many files to work on at once', toJobs, 1)
    .option('--json', 'write one line of JSON per file');
  addFieldOptions(command);
  command.action(async (given: string[], options: TranscribeOptions & Record<string, unknown>) => {
    const paths = withStdin(given);
    const fields = await fieldsIn(options);
    parseRequest(fields); // a wrong value is told before anything starts
    const run = (signal: AbortSignal) => transcribeAll(paths, options, { ...deps, fields, signal });
    const code = await interruptible(run, process.stdout);
    process.exitCode ||= code; // an output that was lost has set it already
  });
}

/** @throws Error where standard input has no audio, or would have to be read twice */
function withStdin(given: string[]): string[] {
  const paths = given.map((path) => (path === '-' ? STDIN : path));
  if (paths.filter((path) => path === STDIN).length > 1) throw new Error('stdin can be given only once');
  if (given.includes('-') && isatty(0))
    throw new Error('stdin is a terminal: pipe audio in, as in "ffmpeg ... | voxgate transcribe -"');
  return paths;
}

interface Work extends TranscribeDeps {
  fields: Fields;
  signal: AbortSignal;
}

/** Returns the exit code. */
async function transcribeAll(paths: string[], options: TranscribeOptions, work: Work): Promise<number> {
  const { fields, signal, stdout = process.stdout, stderr = process.stderr } = work;
  const config = work.config();
  const watch = options.watch ?? false;
  const files = audioFiles(paths, { watch, signal });
  const first = await files.next(); // a path that is not there ends the command before a model is loaded
  if (first.done) return 0;
  const titled = paths.length > 1 || first.value.path !== paths[0];
  const outputs = createOutputs({ ...options, format: formatIn(fields), titled, stdout, stderr });
  await outputs.prepare();
  await using transcriber =
    options.server === undefined
      ? await work.start(config, parseRequest(fields, config.modelAliases))
      : await askingGateway(options.server, config.apiKeys[0], stderr);
  async function* all() {
    if (!first.done) yield first.value;
    yield* files;
  }
  const inParts = comesInParts(fields, config);
  // The bar is for a person at a terminal, and there is room for one.
  const isWatched = isTerminal(stderr) && options.jobs === 1 && !options.json && !watch;
  const createBar = isWatched ? (await import('./audio-bar.ts')).createAudioBar : null;
  let failures = 0;
  const transcribe = async (file: AudioFile) => {
    const view = createBar?.(file.path, stderr as NodeJS.WriteStream) ?? null;
    // A gateway tells how far it is with the parts of a text only.
    if (options.server !== undefined && !inParts) view?.wait();
    else void view?.begin(transcriber.durationOf?.(file.path));
    const question = { audio: file.path, fields, signal, onTextUntil: inParts ? undefined : view?.update };
    const seen = { view, inParts, isShown: isTerminal(stdout) };
    if (!(await transcribeOne(file, { transcriber, question }, outputs, seen)) && !signal.aborted)
      failures += 1;
  };
  try {
    await pMap(all(), transcribe, { concurrency: options.jobs, signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return failures > 0 ? 1 : 0;
}

/** A gateway that runs already. That it is busy is told once. */
async function askingGateway(
  base: string,
  key: string | undefined,
  stderr: NodeJS.WritableStream,
): Promise<Transcriber> {
  const { askFor } = await import('./transcribe-client.ts');
  let told = false;
  const onBusy = (message: string) => {
    if (!told) stderr.write(`${base}: ${message}: waiting for up to ${BUSY_SEC / 60} min\n`);
    told = true;
  };
  return {
    async ask(question) {
      try {
        return await askFor({ ...question, base, key, onBusy });
      } catch (error) {
        const why = unreached(error, base);
        throw why === null
          ? error
          : Object.assign(new Error(why), { code: (error as NodeJS.ErrnoException).code });
      }
    },
    async [Symbol.asyncDispose]() {},
  };
}

interface Seen {
  /** The progress bar; null without one, as where standard error is no terminal. */
  view: AudioBar | null;
  /** Whether the text comes in parts. */
  inParts: boolean;
  /** Whether it is shown while it grows. */
  isShown: boolean;
}

async function transcribeOne(
  file: AudioFile,
  { transcriber, question }: { transcriber: Transcriber; question: Question },
  outputs: Outputs,
  { view, inParts, isShown }: Seen,
): Promise<boolean> {
  try {
    if (file.problem !== undefined) throw file.problem;
    const output = await outputs.open(file);
    if (output === null) return true;
    const part = isShown ? output.part : undefined;
    const onSegment = ({ delta, end }: { delta: string; end: number }) => {
      // Text that is printed as it comes shows the progress by itself, and a bar would be drawn over it.
      if (part === undefined) view?.update(end);
      else view?.close();
      part?.(delta);
    };
    const body = await transcriber.ask({
      ...question,
      onSegment: view !== null && inParts ? onSegment : undefined,
    });
    view?.close();
    await output.write(body);
    return true;
  } catch (error) {
    view?.close();
    if (question.signal.aborted) return false;
    outputs.fail(file, inWords(error));
    if (isPassing(error)) file.again?.();
    return false;
  }
}

/** Texts with speakers have a line for each of them, and are known at the end. */
function comesInParts(fields: Fields, { modelAliases }: Config): boolean {
  const request = parseRequest(fields, modelAliases);
  return request.responseFormat === 'text' && !showsSpeakers(request);
}

const isTerminal = (stream: NodeJS.WritableStream) => (stream as NodeJS.WriteStream).isTTY === true;

/**
 * True where the gateway was not reached, or could not serve: that may be over soon. A connection that breaks may be the
 * fault of this very file, which would end the gateway each time.
 */
function isPassing(error: unknown): boolean {
  if (error instanceof RequestError) return error.status === 502 || error.status === 503;
  return /^E(CONNREFUSED|HOST|NET|AI_AGAIN|NOTFOUND)/.test((error as NodeJS.ErrnoException).code ?? '');
}

function toJobs(value: string): number {
  const jobs = Number(value);
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > MOST_JOBS)
    throw new InvalidArgumentError(`Expected a whole number from 1 to ${MOST_JOBS}.`);
  return jobs;
}
