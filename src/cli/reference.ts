/** docs/cli.md and the man page: the help of every command, so that all three have one source. */
import type { Command } from 'commander';
import { shownCommands } from './completion.ts';

const WIDTH = 90;

const ABOUT = [
  'Settings are environment variables; `voxgate config` shows them.',
  'Results go to stdout, progress and failures to stderr.',
].join('\n');

/** Exit codes that all commands share. */
const EXIT_CODES: readonly (readonly [number, string])[] = [
  [0, 'success'],
  [1, 'a failure, or a command line that cannot be understood'],
  [2, 'a setting is wrong, and the message names it'],
  [130, 'interrupted with Ctrl-C; serve and live then end in order, with 0'],
];

const MEANING_WIDTH = Math.max(...EXIT_CODES.map(([, meaning]) => meaning.length));

/** Gives the text of docs/cli.md. */
export function cliDocument(program: Command): string {
  const sections = helps(program).map(
    ({ path, help }) =>
      `## ${path === '' ? 'All commands' : `voxgate ${path}`}\n\n\`\`\`text\n${help}\n\`\`\`\n`,
  );
  return `# Command line

<!-- \`npm run docs:cli\` writes this page from the help of the commands. -->

\`npx voxgate\` in this folder, or \`voxgate\` where the package is installed.
${ABOUT}

| Exit code | ${'Meaning'.padEnd(MEANING_WIDTH)} |
| --------- | ${'-'.repeat(MEANING_WIDTH)} |
${EXIT_CODES.map(([code, meaning]) => `| ${String(code).padEnd(9)} | ${meaning.padEnd(MEANING_WIDTH)} |`).join('\n')}

${sections.join('\n')}`;
}

/** Gives man/voxgate.1 (man-pages(7), groff_man(7)). */
export function manPage(program: Command): string {
  const sections = helps(program).filter(({ path }) => path !== '');
  return [
    `.TH VOXGATE 1`,
    '.SH NAME',
    `voxgate \\- ${roff(program.description())}`,
    '.SH SYNOPSIS',
    '.B voxgate',
    '.I command',
    '[options]',
    '.SH DESCRIPTION',
    roff(ABOUT.replaceAll('`', '')),
    ...sections.flatMap(({ path, help }) => [`.SH ${path.toUpperCase()}`, '.nf', roff(help), '.fi']),
    '.SH EXIT STATUS',
    ...EXIT_CODES.flatMap(([code, meaning]) => ['.TP', String(code), roff(meaning)]),
    '',
  ].join('\n');
}

/** The help of every command, as it is printed. */
function helps(program: Command): { path: string; help: string }[] {
  return [...shownCommands(program)].map(({ path, command }) => {
    let help = '';
    command.configureOutput({
      writeOut: (text) => {
        help += text;
      },
      getOutHelpWidth: () => WIDTH,
      getOutHasColors: () => false,
    });
    command.outputHelp();
    return { path, help: help.trimEnd() };
  });
}

/** Escapes what groff would read as a request or an escape. */
function roff(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&');
}
