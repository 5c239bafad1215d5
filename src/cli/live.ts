/** `voxgate live [audio]` writes what is said while it is said. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { LIVE_RATES } from '../audio/live/encodings.ts';
import type { Config } from '../config.ts';
import { baseUrl } from '../http/address.ts';
import { DELAYS } from '../transcription/live/stable-text.ts';
import { type LiveInput, openContainer, openFile, openMicrophone, openSamples } from './live-audio.ts';
import { hearLive, type ServerEvent } from './live-client.ts';

interface LiveOptions {
  url?: string;
  model?: string;
  language?: string;
  delay?: string;
  raw?: number;
  json?: true;
}

const CLEAR_LINE = '\r\u001b[2K';
/** The exit status of a program that Ctrl-C has ended. */
const INTERRUPTED = 130;

export function registerLiveCommand(program: Command, config: () => Config): void {
  program
    .command('live')
    .description('write what is said while it is said; Ctrl-C ends with the last text')
    .argument('[audio]', 'a file, played as if it were spoken now, or - for stdin (default: the microphone)')
    .option('--url <url>', 'the gateway (default: the one at SVC_HOST and SVC_PORT)')
    .option('--model <id>', 'a model id, an alias or auto')
    .option('--language <code>', 'ISO 639 code; without it the language is detected')
    .addOption(new Option('--delay <level>', 'how sure a word must be before it is shown').choices(DELAYS))
    .option('--raw <rate>', 'stdin holds bare samples of this rate in Hz: s16le, mono', toRate)
    .option('--json', 'write the events of the server, one line each')
    .action(async (audio: string | undefined, options: LiveOptions) => {
      const { host, port, apiKeys } = config();
      const { model, language, delay, url = baseUrl(host, port) } = options;
      const input = openInput(audio, options.raw);
      const { onEvent, end } = options.json ? jsonPrinter() : textPrinter();
      const interrupt = () => {
        input.stop();
        process.once('SIGINT', () => process.exit(INTERRUPTED));
      };
      process.once('SIGINT', interrupt);
      process.stdout.once('error', input.stop); // the reader has left
      try {
        const failures = await hearLive(input, {
          base: url,
          key: apiKeys[0],
          model,
          language,
          delay,
          onEvent,
        });
        for (const failure of failures) process.stderr.write(`voxgate: ${failure}\n`);
        if (failures.length > 0) process.exitCode = 1;
      } finally {
        end();
        process.removeAllListeners('SIGINT');
        process.stdout.removeListener('error', input.stop);
      }
    });
}

function openInput(audio: string | undefined, raw: number | undefined): LiveInput {
  if (raw !== undefined) return openSamples(process.stdin, raw);
  if (audio === undefined) return openMicrophone();
  return audio === '-' ? openContainer(process.stdin) : openFile(audio);
}

function toRate(value: string): number {
  const rate = Number(value);
  if (!LIVE_RATES.some((known) => known === rate))
    throw new InvalidArgumentError(`Expected one of ${LIVE_RATES.join(', ')}.`);
  return rate;
}

function jsonPrinter() {
  const onEvent = (event: ServerEvent) => void process.stdout.write(`${JSON.stringify(event)}\n`);
  return { onEvent, end: () => undefined };
}

/** Final texts are lines. In a terminal the words of the utterance that goes on stand below them. */
function textPrinter() {
  const { stdout } = process;
  const partials = new Map<string, string>();

  function show(line: string): void {
    const going = [...partials.values()].join(' ').trim();
    // A line that is longer than the terminal cannot be cleared as one.
    const shown = stdout.isTTY ? going.slice(-(stdout.columns - 1)) : '';
    stdout.write(`${stdout.isTTY ? CLEAR_LINE : ''}${line}${shown}`);
  }

  return {
    onEvent({ type, item_id = '', delta = '', transcript }: ServerEvent) {
      if (type.endsWith('.delta')) {
        partials.set(item_id, (partials.get(item_id) ?? '') + delta);
        if (stdout.isTTY) show('');
      } else if (type.endsWith('.completed') || type.endsWith('.failed')) {
        partials.delete(item_id);
        show(transcript ? `${transcript.trim()}\n` : '');
      }
    },
    end: () => void (stdout.isTTY && stdout.write(CLEAR_LINE)),
  };
}
