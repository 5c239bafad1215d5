/** `voxgate live [audio]` writes what is said while it is said. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { baseUrl, reachable } from '../address.ts';
import { LIVE_RATES } from '../audio/live/encodings.ts';
import type { Config } from '../config/config.ts';
import { DELAYS } from '../transcription/live/stable-text.ts';
import { INTERRUPTED } from './interrupt.ts';
import { type LiveInput, openContainer, openFile, openMicrophone, openSamples } from './live-audio.ts';
import { createJsonPrinter, createTextPrinter } from './live-text.ts';
import { examples, toUrl } from './options.ts';

interface LiveOptions {
  url?: string;
  model?: string;
  language?: string;
  delay?: string;
  raw?: number;
  json?: true;
}

export function registerLiveCommand(program: Command, config: () => Config): void {
  program
    .command('live')
    .description('transcribe speech as it is spoken; Ctrl-C ends after the last text')
    .addHelpText(
      'after',
      examples(
        'voxgate live',
        'voxgate live --language de interview.mp3',
        'arecord -q -f S16_LE -r 16000 -t raw | voxgate live --raw 16000 -',
      ),
    )
    .argument('[audio]', 'a file, played as if it were spoken now, or - for stdin (default: the microphone)')
    .option('--url <url>', 'the gateway (default: the one at SVC_HOST and SVC_PORT)', toUrl)
    .option('--model <id>', 'a model id, an alias or auto')
    .option('--language <code>', 'ISO 639 code (default: detect the language)')
    .addOption(new Option('--delay <level>', 'how sure a word must be before it is shown').choices(DELAYS))
    .option('--raw <rate>', 'stdin is raw samples at this rate in Hz: s16le, mono', toRate)
    .option('--json', 'write server events, one per line')
    .action(async (audio: string | undefined, options: LiveOptions) => {
      const { host, port, apiKeys } = config();
      const { model, language, delay, url = baseUrl(reachable(host), port) } = options;
      const input = openInput(audio, options.raw);
      const print = options.json ? createJsonPrinter() : createTextPrinter();
      const interrupt = () => {
        input.stop();
        process.once('SIGINT', () => process.exit(INTERRUPTED));
      };
      const onFailure = (message: string) => {
        print.failure(message);
        process.exitCode = 1;
      };
      process.once('SIGINT', interrupt);
      process.stdout.once('error', input.stop); // the reader of the pipe has closed it
      try {
        // It loads the WebSockets, which no other command needs.
        const { transcribeLive } = await import('./live-client.ts');
        const asked = { base: url, key: apiKeys[0], model, language, delay };
        await transcribeLive(input, { ...asked, onEvent: print.event, onFailure });
      } finally {
        print.end();
        process.removeAllListeners('SIGINT');
        process.stdout.removeListener('error', input.stop);
      }
    });
}

function openInput(audio: string | undefined, raw: number | undefined): LiveInput {
  if (raw !== undefined && audio !== undefined && audio !== '-')
    throw new Error(`--raw reads stdin, and ${audio} is a file: leave one of them out`);
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
