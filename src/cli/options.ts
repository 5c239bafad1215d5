/** What several commands share: the address of a gateway as an option, examples below a help text, and tables. */
import { InvalidArgumentError } from 'commander';
import { socketPathOf, withoutTrailingSlashes } from '../address.ts';

/**
 * The base of the paths. Clients of OpenAI's API want an address that ends in /v1, so it may end in it here, too.
 * @throws InvalidArgumentError when it is no address of HTTP and no Unix socket
 */
export function toUrl(value: string): string {
  if (socketPathOf(value)?.startsWith('/')) return value;
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new InvalidArgumentError(
      'Expected an address such as http://127.0.0.1:8000, or unix:/run/voxgate.sock.',
    );
  return withoutTrailingSlashes(value).replace(/\/v1$/, '');
}

/** Gives the lines that stand below a command's help, for `addHelpText('after', ...)`. */
export function examples(...lines: string[]): string {
  return ['', 'Examples:', ...lines.map((line) => `  ${line}`)].join('\n');
}

/** Lines of cells in columns, which are as wide as their longest cell. */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = rows[0] ?? [];
  const widths = columns.map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}
