/**
 * `npm run build` compiles the TypeScript and the native addon; both halves are incremental. A word chooses one part:
 *
 *   npm run build [-- --cpu=all]                     what is left is for the addon: see build-native.mjs
 *   npm run build -- ts
 *   npm run build -- native [--arch=arm64]
 *   npm run build -- cuda [--architectures=90]       see build-cuda.mjs
 *   npm run build -- vulkan                          see build-vulkan.mjs
 */
import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './tools.mjs';

const PARTS = {
  ts: buildTypeScript,
  native: (args) => node('scripts/build-native.mjs', args),
  cuda: (args) => node('scripts/build-cuda.mjs', args),
  vulkan: (args) => node('scripts/build-vulkan.mjs', args),
};

const [word, ...others] = process.argv.slice(2);
if (word === undefined || word.startsWith('-')) {
  PARTS.ts();
  PARTS.native(process.argv.slice(2));
} else if (Object.hasOwn(PARTS, word)) {
  PARTS[word](others);
} else {
  process.stderr.write(`There is no part ${word}, only ${Object.keys(PARTS).join(', ')}.\n`);
  process.exit(1);
}

function buildTypeScript() {
  node('node_modules/typescript/bin/tsc', ['-p', 'tsconfig.build.json']);
  chmodSync(join(ROOT, 'dist/main.js'), 0o755);
}

/** Runs a program of Node; the process ends with its status where it fails. */
function node(program, args) {
  const { status } = spawnSync(process.execPath, [program, ...args], { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
