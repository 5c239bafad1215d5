/** Where the texts of `voxgate transcribe` go: to a file each, or one after the other to stdout. */
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, parse } from 'node:path';
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

export interface Outputs {
  /** Null for a file that has its text already. @throws Error when the text of another file has its place */
  open(file: AudioFile): Promise<{ write(body: string): Promise<void> } | null>;
  fail(file: AudioFile, message: string): void;
}

/** The others are JSON. */
const ENDING: Readonly<Partial<Record<ResponseFormat, string>>> = { text: 'txt', srt: 'srt', vtt: 'vtt' };

export function createOutputs(options: OutputOptions): Outputs {
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

  function placeFor(dir: string, { path, name }: AudioFile): string {
    const { dir: folder, name: stem } = parse(name);
    const place = join(dir, folder, `${stem}.${ending}`);
    const other = placeOf.get(place) ?? path;
    if (other !== path) throw new Error(`its text would be ${place}, which is that of ${other}`);
    placeOf.set(place, path);
    return place;
  }

  return {
    async open(file) {
      if (outputDir === undefined) return { write: async (body) => print(file, body) };
      const place = placeFor(outputDir, file);
      if (!overwrite && (await exists(place))) {
        stderr.write(`${file.path}: ${place} is there already\n`);
        return null;
      }
      return {
        async write(body) {
          await mkdir(dirname(place), { recursive: true });
          const part = `${place}.part`;
          try {
            await writeFile(part, body);
            await rename(part, place);
          } catch (error) {
            await rm(part, { force: true });
            throw error;
          }
          if (json) line({ file: file.path, output: place });
          else stderr.write(`${file.path}: ${place}\n`);
        },
      };
    },
    fail({ path }, message) {
      if (json) line({ file: path, error: message });
      stderr.write(`${path}: ${message}\n`);
    },
  };
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );
