/** `voxgate build` compiles the native engine where there is none that was compiled already. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { examples } from './options.ts';

/** The same relative path serves both src/cli and dist/cli. */
const SCRIPT = fileURLToPath(new URL('../../scripts/build-native.mjs', import.meta.url));

/** The exit code is that of the build. */
export function registerBuildCommand(program: Command): void {
  program
    .command('build')
    .description('compile the native engine for this machine; npm fetches missing sources')
    .addHelpText('after', examples('voxgate build'))
    .action(() => {
      process.exitCode = spawnSync(process.execPath, [SCRIPT], { stdio: 'inherit' }).status ?? 1;
    });
}
