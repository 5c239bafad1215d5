/** Where the texts of `voxgate transcribe` go: to a file each, or one after the other to stdout. */
import { access, constants, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import type { ResponseFormat } from '../transcription/request.ts';
import type { AudioFile } from './audio-files.ts';

export interface OutputOptions {
  format: ResponseFormat;
  outputDir?: string;
  overwrite?: true;
  json?: true;
  /** Whether the path stands above each text on stdout. */
  titled: boolean;
  stdout: NodeJS.WritableStream;
  stderr: NodeJS.WritableStream;
}

export interface Output {
  write(body: string): Promise<void>;
  /** Shows a part of the text before the whole is known; absent where the text goes to a file. */
  part?(text: string): void;
}

export type Outputs = ReturnType<typeof createOutputs>;

/** The others are JSON. */
const ENDING: Readonly<Partial<Record<ResponseFormat, string>>> = { text: 'txt', srt: 'srt', vtt: 'vtt' };

export function createOutputs(options: OutputOptions) {
  const { format, outputDir, overwrite, json, titled, stdout, stderr } = options;
  const ending = ENDING[format] ?? 'json';
  const placeOf = new Map<string, string>();

  const line = (value: object) => stdout.write(`${JSON.stringify(value)}\n`);
  const content = (body: string) => (ending === 'json' ? { response: JSON.parse(body) } : { text: body });

  function print({ path }: AudioFile, body: string): void {
    if (json) {
      line({ file: path, ...content(body) });
      return;
    }
    if (titled) stdout.write(`==> ${path} <==\n`);
    stdout.write(body.endsWith('\n') ? body : `${body}\n`);
  }

  /** The path of the file whose text has begun to be shown, and goes on. */
  let begun: string | null = null;

  function printPart({ path }: AudioFile, text: string): void {
    if (titled && begun === null) stdout.write(`==> ${path} <==\n`);
    begun = path;
    stdout.write(text);
  }

  /** Ends the line of a text that was shown in parts. */
  function endParts(path: string): boolean {
    if (begun !== path) return false;
    begun = null;
    stdout.write('\n');
    return true;
  }

  function placeFor(dir: string, { path, name }: AudioFile): string {
    const { dir: folder, name: stem } = parse(name);
    const place = join(dir, folder, `${stem}.${ending}`);
    const other = placeOf.get(place) ?? path;
    if (other !== path) throw new Error(`its text would be ${place}, which is that of ${other}`);
    placeOf.set(place, path);
    return place;
  }

  return {
    /** @throws Error when there is no folder to write to, which is better told before anything is heard */
    prepare: async () => requireWritable(outputDir),
    /** Null for a file that has its text already. @throws Error when the text of another file has its place */
    async open(file: AudioFile): Promise<Output | null> {
      if (outputDir === undefined)
        return {
          write: async (body) => void (endParts(file.path) || print(file, body)),
          part: (text) => printPart(file, text),
        };
      const place = placeFor(outputDir, file);
      if (!overwrite && (await exists(place))) {
        stderr.write(`${file.path}: ${place} is there already\n`);
        return null;
      }
      return {
        async write(body) {
          await writeWhole(place, body);
          if (json) line({ file: file.path, output: place });
          else stderr.write(`${file.path}: ${place}\n`);
        },
      };
    },
    fail({ path }: AudioFile, message: string): void {
      const named = message.startsWith(path) ? message : `${path}: ${message}`;
      const isBrokenOff = endParts(path);
      if (json) line({ file: path, error: message });
      stderr.write(isBrokenOff ? `${named} (the text above is incomplete)\n` : `${named}\n`);
    },
  };
}

async function requireWritable(dir: string | undefined): Promise<void> {
  if (dir === undefined) return;
  try {
    makeFolder(dir);
    await access(dir, constants.W_OK);
  } catch (error) {
    throw new Error('The folder of --output-dir cannot be written to', { cause: error });
  }
}

/** Writes aside and renames, so that a reader never finds half of a text. */
async function writeWhole(place: string, body: string): Promise<void> {
  makeFolder(dirname(place));
  const part = `${place}.part`;
  try {
    await writeFile(part, body);
    await rename(part, place);
  } catch (error) {
    await rm(part, { force: true });
    throw new Error(`${place} cannot be written`, { cause: error });
  }
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );
