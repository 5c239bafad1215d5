/** Finds the places in docs/ and bench/results/ that the benches write. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './machine.ts';

export interface Place {
  write(report: string): void;
}

/**
 * Finds the text from `<!-- bench:name -->` to `<!-- /bench:name -->`. @throws Error where they are missing, before
 * hours are spent
 */
export function findPlace(name: string, path = 'docs/performance.md'): Place {
  const page = join(ROOT, path);
  const [begin, end] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
  const read = () => {
    const text = readFileSync(page, 'utf8');
    const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
    if (from < begin.length || to < from) throw new Error(`${path} has no ${begin} with ${end} behind it`);
    return { before: text.slice(0, from), after: text.slice(to) };
  };
  read();
  return {
    write(report) {
      const { before, after } = read();
      writeFileSync(page, `${before}\n\n${report.split('\n').map(wrapped).join('\n')}\n\n${after}`);
    },
  };
}

/** Wraps a paragraph at the page's line length; tables, headings and pictures stay as they are. */
function wrapped(line: string): string {
  if (/^[|#!]/.test(line)) return line;
  return line.replace(/(?! )(.{1,110})(?: +|$)/g, '$1\n').trimEnd();
}

/** A table with a row for each item. @param columns what each has for an item, by its name */
export function tableOf<Item>(
  items: readonly Item[],
  columns: Readonly<Record<string, (item: Item) => string>>,
): string {
  const cells = Object.values(columns);
  return markdownTable(
    Object.keys(columns),
    items.map((item) => cells.map((cell) => cell(item))),
  );
}

/** Writes a table whose columns are as wide as their widest cell. */
export function markdownTable(columns: string[], rows: string[][]): string {
  const widths = columns.map((_, i) =>
    Math.max(3, ...[columns, ...rows].map((cells) => cells[i]?.length ?? 0)),
  );
  const rule = widths.map((width) => '-'.repeat(width));
  return [columns, rule, ...rows]
    .map((cells) => `| ${cells.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join(' | ')} |`)
    .join('\n');
}
