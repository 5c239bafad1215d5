/** Finds the shell commands that a document tells its readers to type, and its other blocks of code. */

export interface DocumentCommand {
  page: string;
  /** In one line. */
  command: string;
  /** What follows `# ` behind it; empty without. */
  comment: string;
}

/** Takes the blocks of `sh`, at any indentation, and the examples in the help of the commands. */
export function documentCommands(page: string, markdown: string): DocumentCommand[] {
  const commands: DocumentCommand[] = [];
  let block: string | null = null;
  let isShell = false;
  for (const line of markdown.replace(/\s*\\\n\s*/g, ' ').split('\n')) {
    const [, language] = /^ *```(\w*)/.exec(line) ?? [];
    if (language !== undefined) {
      block = block === null ? language : null;
      isShell = block === 'sh';
    } else if (block === 'text' && /^\w+:$/.test(line)) {
      isShell = line === 'Examples:';
    } else if (isShell && line.trim() !== '') {
      const [, command = '', comment = ''] = /^\s*(.*?)(?:\s+# (.*))?$/.exec(line) ?? [];
      commands.push({ page, command, comment });
    }
  }
  return commands;
}

export interface CodeBlock {
  /** The heading above it. */
  section: string;
  language: string;
  code: string;
}

/** Takes all blocks that begin at the margin, below headings of the second level. */
export function codeBlocks(markdown: string): CodeBlock[] {
  return markdown.split(/^## /m).flatMap((part) =>
    [...part.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', code = '']) => ({
      section: part.split('\n', 1)[0] ?? '',
      language,
      code,
    })),
  );
}
