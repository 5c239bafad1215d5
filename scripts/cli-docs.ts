/**
 * `npm run docs:cli` writes docs/cli.md and man/voxgate.1 from the help of the commands, so that all three have one source,
 * and the tables of docs/configuration.md from the schema of the settings.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Command } from 'commander';
import { shownCommands } from '../src/cli/completion.ts';
import { createProgram } from '../src/cli/program.ts';
import { describedGroups } from '../src/config/shown-settings.ts';

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

/** The defaults that depend on the machine. */
const DERIVED: Readonly<Record<string, string>> = {
  SVC_MODEL_DIR: '`$XDG_CACHE_HOME/voxgate/models`, else `~/.cache/voxgate/models`',
  SVC_MODEL_MEMORY_MB: 'three quarters of the memory',
  SVC_THREADS: "physical cores, or the container's quota",
  SVC_TMP_DIR: "the system's",
};

/** Where the documents say more of a setting. */
const SEE: Readonly<Record<string, string>> = {
  SVC_WYOMING_PORT: '[below](#wyoming)',
  SVC_MODEL_ALIASES: '[below](#model-aliases)',
  SVC_MODEL_MEMORY_MB: '[below](#memory-of-models)',
  SVC_DEVICE: '[below](#the-gpu)',
  SVC_CPU: '[below](#the-cpu)',
  SVC_MAX_WAIT_SEC: '[API](api.md#waiting-for-the-slot)',
  SVC_CORS_ORIGINS: '[below](#other-sites)',
  SVC_ALLOWED_HOSTS: '[below](#names)',
  SVC_TRUST_PROXY: '[below](#reverse-proxies)',
};

const MARKED = /(?<=<!-- settings -->\n\n).*?(?=\n\n<!-- \/settings -->)/s;

/** @returns the document with the tables between its marks made anew */
export function withSettingsTables(document: string): string {
  if (!MARKED.test(document)) throw new Error('The document has no marks of the tables of settings');
  return document.replace(MARKED, settingsTables);
}

function settingsTables(): string {
  return describedGroups()
    .map(({ title, settings }) => {
      const rows = settings.map(({ name, description, allowed, fallback }) => [
        `\`${name}\``,
        DERIVED[name] ?? (fallback === '' ? '' : `\`${fallback}\``),
        allowed,
        name in SEE ? `${description}, see ${SEE[name]}` : description,
      ]);
      return `### ${title}\n\n${markdownTable([['Name', 'Default', 'Allowed', 'Meaning'], ...rows])}`;
    })
    .join('\n\n');
}

/** Pads the cells as Biome does. */
function markdownTable([head = [], ...rows]: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}

if (process.argv[1] === import.meta.filename) {
  mkdirSync('man', { recursive: true });
  writeFileSync('docs/cli.md', cliDocument(await createProgram()));
  writeFileSync('man/voxgate.1', manPage(await createProgram()));
  writeFileSync('docs/configuration.md', withSettingsTables(readFileSync('docs/configuration.md', 'utf8')));
}
