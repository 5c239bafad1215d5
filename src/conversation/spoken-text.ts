/**
 * Turns what a model writes into text to speak: sentence by sentence, as soon as each is complete, without Markdown
 * markup (CommonMark 0.31). Code blocks are skipped; of a link the label is read, and of a table the cells.
 */
import { marked, type Token, type Tokens } from 'marked';
import { splitSentences } from './sentence-stream.ts';

/** The longest text sent to the speech server at once, in characters. A longer sentence is split, to start sooner. */
const LONGEST = 300;
/** A part has at least this many characters. */
const SHORTEST_PART = 40;

export function createSpokenText() {
  const prose = withoutCode();
  let open = '';
  const spoken = (sentences: string[]) =>
    sentences.map(withoutMarks).filter((text) => /[\p{L}\p{N}]/u.test(text));
  function take(text: string): string[] {
    const { sentences, rest } = splitSentences(open + text);
    open = rest;
    const parts = [...sentences];
    for (let cut = cutOf(open); cut !== null; cut = cutOf(open)) {
      parts.push(open.slice(0, cut));
      open = open.slice(cut);
    }
    return parts;
  }
  return {
    /** Takes more of the text, and returns what can be spoken by now. */
    push: (text: string) => spoken(take(prose.push(text))),
    /** Returns the rest. */
    end(): string[] {
      const last = [...take(prose.end()), open];
      open = '';
      return spoken(last);
    },
  };
}

/** Where to cut a sentence that is too long: after its last mark or space; null while it is short enough. */
function cutOf(text: string): number | null {
  if (text.length <= LONGEST) return null;
  const part = text.slice(0, LONGEST);
  const at = Math.max(...[', ', '; ', ': ', '，', '、', '；', '：'].map((mark) => part.lastIndexOf(mark)));
  if (at >= SHORTEST_PART) return at + 1;
  const space = part.lastIndexOf(' ');
  return space >= SHORTEST_PART ? space : LONGEST;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})/;

/** Leaves out fenced blocks of code. A line that may still become a fence is held back. */
function withoutCode() {
  let line = '';
  let fence: string | null = null;
  /** What of the line was given away. */
  let given = 0;

  function take(isLast: boolean): string {
    const opening = FENCE.exec(line)?.[1];
    const isFence = opening !== undefined && (fence === null || opening.startsWith(fence));
    const mayBeFence = !isLast && /^ {0,3}(`{0,3}|~{0,3})$/.test(line);
    let out = '';
    if (fence === null && !isFence && !mayBeFence) {
      out = line.slice(given);
      given = line.length;
    }
    if (isLast) {
      if (isFence) fence = fence === null ? opening.slice(0, 3) : null;
      line = '';
      given = 0;
    }
    return out;
  }

  return {
    push(text: string): string {
      let out = '';
      const lines = text.split('\n');
      for (const [i, piece] of lines.entries()) {
        line += piece;
        const isEnd = i < lines.length - 1;
        if (isEnd) line += '\n';
        out += take(isEnd);
      }
      return out;
    },
    end: () => take(true),
  };
}

/** A sentence as a person would say it. */
function withoutMarks(sentence: string): string {
  return (
    proseOf(marked.lexer(sentence.trim()))
      // Marks whose other end stands in another sentence.
      .replace(/\*\*|__|~~|`/g, '')
      .replace(/(?<=^|\s)\*(?=\S)|(?<=\S)\*(?=\s|$)/g, '')
      .replace(/\p{Extended_Pictographic}|\u200d|\ufe0f/gu, '')
      .split('|') // the cells of a row
      .map((cell) => cell.split(/\s+/).filter(Boolean).join(' '))
      .filter((cell) => /[\p{L}\p{N}]/u.test(cell))
      .join(', ')
  );
}

function proseOf(tokens: readonly Token[]): string {
  return tokens.map((token) => proseOfToken(token as Tokens.Generic)).join('');
}

function proseOfToken(token: Tokens.Generic): string {
  switch (token.type) {
    case 'html':
    case 'hr':
    case 'space':
    case 'br':
      return ' ';
    case 'list':
      return (
        (token as Tokens.List).items
          // A number may also be the day of a date.
          .map((item, i) => `${token.ordered ? `${Number(token.start) + i}. ` : ''}${proseOf(item.tokens)}`)
          .join(' ')
      );
    default:
      return token.tokens === undefined ? (token.text ?? token.raw) : proseOf(token.tokens);
  }
}
