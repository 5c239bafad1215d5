/** `npm run docs:cli` writes docs/cli.md and man/voxgate.1 from the help of the commands. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createProgram } from '../src/cli/program.ts';
import { cliDocument, manPage } from '../src/cli/reference.ts';

mkdirSync('man', { recursive: true });
writeFileSync('docs/cli.md', cliDocument(createProgram()));
writeFileSync('man/voxgate.1', manPage(createProgram()));
