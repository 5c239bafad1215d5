/** Gives the lines that stand below a command's help, for `addHelpText('after', ...)`. */
export function examples(...lines: string[]): string {
  return ['', 'Examples:', ...lines.map((line) => `  ${line}`)].join('\n');
}
