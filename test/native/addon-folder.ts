/** Folders with another set of libraries beside the addon, and processes that load the addon from there. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const BUILD = new URL('../../build/Release/', import.meta.url).pathname;
const ADDON = new URL('../../src/engine/addon.ts', import.meta.url).href;

/** Copies the addon and its libraries into a new folder of `dir`, but for those whose names begin like `left`. */
export async function addonWithout(dir: string, ...left: string[]): Promise<string> {
  const folder = await mkdtemp(join(dir, 'addon-'));
  for (const name of await readdir(BUILD))
    if (/\.(node|so)$/.test(name) && !left.some((begin) => name.startsWith(begin)))
      await copyFile(join(BUILD, name), join(folder, name));
  return folder;
}

/**
 * Loads the addon of a folder as `native` in a process of its own, and gives what the script prints. What the libraries
 * log comes into `logged`.
 */
export async function inProcess(
  folder: string,
  options: { gpus: boolean; cpu?: string },
  script: string,
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const load = `
    const { loadNative } = await import(${JSON.stringify(ADDON)});
    const logged = [];
    const loading = { ...${JSON.stringify(options)}, log: (level, line) => logged.push(\`\${level}: \${line}\`) };
    const native = loadNative(${JSON.stringify(join(folder, 'voxgate.node'))}, loading);
    ${script}`;
  const { stdout } = await run(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', load], {
    env: { ...process.env, ...env },
  });
  return stdout;
}
