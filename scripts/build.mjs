/**
 * `npm run build` compiles the TypeScript and the native addon; both halves are incremental. A word chooses one part:
 *
 *   npm run build [-- --cpu=all]                     what is left is for the addon: see build-native.mjs
 *   npm run build -- ts
 *   npm run build -- native [--arch=arm64]
 *   npm run build -- cuda [--architectures=90]       see build-cuda.mjs
 *   npm run build -- vulkan                          see build-vulkan.mjs
 */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exec, fail, ROOT } from './tools.mjs';

const PARTS = {
  ts: buildTypeScript,
  native: (args) => exec(process.execPath, ['scripts/build-native.mjs', ...args]),
  cuda: (args) => exec(process.execPath, ['scripts/build-cuda.mjs', ...args]),
  vulkan: (args) => exec(process.execPath, ['scripts/build-vulkan.mjs', ...args]),
};

const [word, ...others] = process.argv.slice(2);
if (word === undefined || word.startsWith('-')) {
  PARTS.ts();
  PARTS.native(process.argv.slice(2));
} else if (Object.hasOwn(PARTS, word)) {
  PARTS[word](others);
} else {
  fail(`There is no part ${word}, only ${Object.keys(PARTS).join(', ')}.`);
}

function buildTypeScript() {
  exec(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json']);
  chmodSync(join(ROOT, 'dist/main.js'), 0o755);
  writeFileSync(join(ROOT, 'dist/.built'), ''); // by its time the quickstart sees that nothing has changed
}
