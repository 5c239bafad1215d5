/** `voxgate replay <dir>` sends a captured request again, to compare answers between versions. */
import type { Command } from 'commander';
import { baseUrl, reachable } from '../address.ts';
import { replay } from '../capture/replay.ts';
import type { Config } from '../config/config.ts';
import { inWords } from '../errors.ts';
import { examples, toUrl } from './options.ts';
import { unreached } from './unreached.ts';

export function registerReplayCommand(program: Command, config: () => Config): void {
  program
    .command('replay')
    .description('resend a captured request and compare the answers; exit status 1 when they differ')
    .addHelpText(
      'after',
      examples(
        'voxgate replay payloads/2026-11-20/3f2a9c',
        'voxgate replay --url http://127.0.0.1:9000 payloads/2026-11-20/3f2a9c',
      ),
    )
    .argument('<dir>', 'a capture: <SVC_OBS_PAYLOAD_DIR>/<date>/<request id>')
    .option('--url <url>', 'the gateway to send it to (default: the one at SVC_HOST and SVC_PORT)', toUrl)
    .action(async (dir: string, options: { url?: string }) => {
      const { host, port, apiKeys } = config();
      const base = options.url ?? baseUrl(reachable(host), port);
      const report = await replay(dir, base, { apiKey: apiKeys[0] }).catch((error: Error) => {
        const why = unreached(error.cause ?? error, base) ?? inWords(error);
        throw new Error(`Cannot replay ${dir}: ${why}`);
      });
      process.stdout.write(
        `${report.summary}\nstatus   ${report.status.captured} then, ${report.status.now} now\nlatency  ${report.latencyMs.captured} ms then, ${report.latencyMs.now} ms now\n`,
      );
      if (!report.same) process.exitCode = 1;
    });
}
