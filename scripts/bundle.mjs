/**
 * Bundles tests and the programs that they start into one JavaScript file each. A process that loads the sources one by
 * one through tsx computes for a second before its first line of work, and `npm test` starts hundreds of them.
 */
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { ROOT } from './tools.mjs';

/** A bundled module finds what lies beside its source, not beside the bundle. */
const placeOfTheSource = {
  name: 'place of the source',
  setup({ onLoad }) {
    onLoad({ filter: /\.(ts|mjs|js)$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      if (!text.includes('import.meta')) return undefined;
      const place = `const sourceUrl = ${JSON.stringify(pathToFileURL(path).href)}, sourcePath = ${JSON.stringify(path)};`;
      return { contents: `${place} ${text}`, loader: extname(path) === '.ts' ? 'ts' : 'js' };
    });
  },
};

/**
 * @param paths of sources, from the root
 * @param folder below the root, because a bundle imports the packages of `node_modules`
 */
export async function bundle(paths, folder) {
  await build({
    absWorkingDir: ROOT,
    entryPoints: paths,
    outdir: folder,
    outbase: ROOT,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20.18',
    keepNames: true,
    sourcemap: 'linked',
    sourcesContent: false,
    define: { 'import.meta.url': 'sourceUrl', 'import.meta.filename': 'sourcePath' },
    plugins: [placeOfTheSource],
    logLevel: 'warning',
  });
}

/** The bundle of a source. */
export function bundleOf(path, folder) {
  return join(folder, path.replace(/\.ts$/, '.mjs'));
}
