/**
 * Parses a recipe of docs/recipes into steps that a program can follow. The info string of a code block says what the
 * block is for:
 *
 * - `ts file=PATH`: a new file with this content
 * - `diff file=PATH`: a change to a file, as context, `-` and `+` lines; `@@` begins the next place in the file
 * - `sh`: a command that must succeed; with `fails=TEXT` it must fail and print that text
 * - `sh serve`: starts a gateway, to which `http://127.0.0.1:8000` leads in the commands after it
 * - `text answer`: what the command before it prints, exactly
 *
 * A block of any other kind is refused, so that no code in a recipe is left untried.
 */
export type Step = { line: number } & (
  | { does: 'create' | 'change'; path: string; text: string }
  | { does: 'run'; command: string; fails: string | null; answer: string | null }
  | { does: 'serve'; command: string }
);

/** @throws Error that names the line of a block that cannot be followed. */
export function parseRecipe(markdown: string): Step[] {
  const steps: Step[] = [];
  for (const { line, info, text } of codeBlocks(markdown)) {
    const [, language, use, value = ''] = /^(\w*)(?: (\w+)(?:=(.+))?)?$/.exec(info) ?? [];
    const last = steps.at(-1);
    if (use === 'file' && value !== '') {
      steps.push({ line, does: language === 'diff' ? 'change' : 'create', path: value, text });
    } else if (language === 'sh' && use === 'serve') {
      steps.push({ line, does: 'serve', command: text });
    } else if (language === 'sh' && use === undefined) {
      steps.push({ line, does: 'run', command: text, fails: null, answer: null });
    } else if (language === 'sh' && use === 'fails' && value !== '') {
      steps.push({ line, does: 'run', command: text, fails: value, answer: null });
    } else if (language === 'text' && use === 'answer' && last?.does === 'run') {
      last.answer = text;
    } else {
      throw new Error(`line ${line}: no block of a recipe begins with \`\`\`${info} here`);
    }
  }
  return steps;
}

interface CodeBlock {
  line: number;
  info: string;
  /** The text, with a newline at its end. */
  text: string;
}

function codeBlocks(markdown: string): CodeBlock[] {
  const blocks: CodeBlock[] = [];
  let open: CodeBlock | null = null;
  for (const [i, line] of markdown.split('\n').entries()) {
    const fence = /^```(.*)$/.exec(line);
    if (fence === null) {
      if (open !== null) open.text += `${line}\n`;
    } else if (open === null) {
      open = { line: i + 1, info: fence[1]?.trim() ?? '', text: '' };
    } else {
      blocks.push(open);
      open = null;
    }
  }
  if (open !== null) throw new Error(`line ${open.line}: the block has no end`);
  return blocks;
}

/**
 * Applies a change. Its context must stand in the file exactly once; indentation and padding are not compared, so
 * that a table with other column widths is still found.
 * @throws Error that quotes the context that is not there, or is there more than once.
 */
export function applyDiff(source: string, diff: string): string {
  const hunks = diff.split(/^@@.*\n/m).filter((hunk) => hunk !== '');
  return hunks.reduce((text, hunk) => applyHunk(text, hunk.replace(/\n$/, '').split('\n')), source);
}

function applyHunk(source: string, hunk: string[]): string {
  const lines = source.split('\n');
  const old = hunk.filter((line) => !line.startsWith('+'));
  const isHere = (at: number) => old.every((line, i) => squeezed(line.slice(1)) === squeezed(lines[at + i]));
  const [at, ...others] = old.length === 0 ? [] : [...lines.keys()].filter(isHere);
  if (at === undefined) throw new Error(`This is not in the file:\n${old.join('\n')}`);
  if (others.length > 0)
    throw new Error(`This is in the file ${others.length + 1} times:\n${old.join('\n')}`);
  const kept = lines.slice(at, at + old.length);
  const made: string[] = [];
  for (const line of hunk) {
    if (line.startsWith('+')) made.push(line.slice(1));
    else {
      const own = kept.shift() ?? '';
      if (!line.startsWith('-')) made.push(own);
    }
  }
  return [...lines.slice(0, at), ...made, ...lines.slice(at + old.length)].join('\n');
}

const squeezed = (line = '\0') => line.trim().replace(/\s+/g, ' ');
