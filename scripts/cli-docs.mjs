/**
 * `npm run docs:cli` writes docs/cli.md and man/voxgate.1 from the help of the commands, and the table of
 * docs/configuration.md from the schema of the settings.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createProgram } from '../src/cli/program.ts';
import { cliDocument, manPage } from '../src/cli/reference.ts';
import { withSettingsTables } from '../src/cli/settings-document.ts';

mkdirSync('man', { recursive: true });
writeFileSync('docs/cli.md', cliDocument(await createProgram()));
writeFileSync('man/voxgate.1', manPage(await createProgram()));
writeFileSync('docs/configuration.md', withSettingsTables(readFileSync('docs/configuration.md', 'utf8')));
