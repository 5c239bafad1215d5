/** What `voxgate live` prints: texts for people, or the events of the server for programs. */
import stringWidth from 'string-width';
import type { ServerEvent } from './live-client.ts';

export interface LivePrinter {
  event(event: ServerEvent): void;
  /** Tells that an utterance has failed. */
  failure(message: string): void;
  /** Removes what is not final. */
  end(): void;
}

type Output = Pick<NodeJS.WriteStream, 'write' | 'isTTY' | 'columns'>;

const CLEAR_LINE = '\r\u001b[2K';
/** Where a terminal does not tell its width, as under some debuggers. */
const COLUMNS = 80;

export function createJsonPrinter(
  stdout: Output = process.stdout,
  stderr: Output = process.stderr,
): LivePrinter {
  return {
    event: (event) => void stdout.write(`${JSON.stringify(event)}\n`),
    failure: (message) => void stderr.write(`voxgate: ${message}\n`),
    end: () => undefined,
  };
}

/** Final texts are lines, one for each segment where speakers are told apart, such as `A: Good morning.` In a terminal the words of the utterance that goes on stand below them. */
export function createTextPrinter(
  stdout: Output = process.stdout,
  stderr: Output = process.stderr,
): LivePrinter {
  const partials = new Map<string, string>();
  /** The lines of the segments of each utterance that is not complete. */
  const segments = new Map<string, string[]>();
  const clear = stdout.isTTY ? CLEAR_LINE : '';

  function show(line: string): void {
    const going = printable([...partials.values()].join(' '));
    // A line that is longer than the terminal could not be cleared as one.
    const shown = stdout.isTTY ? tail(going, (stdout.columns || COLUMNS) - 1) : '';
    stdout.write(`${clear}${line}${shown}`);
  }

  return {
    event({ type, item_id = '', delta = '', transcript = '', speaker = '', text = '' }) {
      if (type.endsWith('.delta')) {
        partials.set(item_id, (partials.get(item_id) ?? '') + delta);
        if (stdout.isTTY) show('');
      } else if (type.endsWith('.segment')) {
        segments.set(item_id, [
          ...(segments.get(item_id) ?? []),
          `${printable(speaker)}: ${printable(text)}`,
        ]);
      } else if (type.endsWith('.completed') || type.endsWith('.failed')) {
        const lines = (type.endsWith('.completed') && segments.get(item_id)) || [printable(transcript)];
        partials.delete(item_id);
        segments.delete(item_id);
        show(lines.map((line) => (line === '' ? '' : `${line}\n`)).join(''));
      }
    },
    failure(message) {
      if (stdout.isTTY) stdout.write(clear);
      stderr.write(`voxgate: ${printable(message)}\n`);
      if (stdout.isTTY) show('');
    },
    end: () => void stdout.write(clear),
  };
}

/** Text of a server on one line, and without what a terminal would obey. */
const printable = (text: string): string => text.replace(/\p{Cc}+/gu, ' ').trim();

/** The end of a text that is no wider than so many columns. Characters of Chinese, Japanese and Korean take two. */
function tail(text: string, columns: number): string {
  let shown = '';
  let width = 0;
  for (const { segment } of [...new Intl.Segmenter().segment(text)].reverse()) {
    width += stringWidth(segment);
    if (width > columns) break;
    shown = segment + shown;
  }
  return shown;
}
