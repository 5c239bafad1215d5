/** `voxgate config` shows every setting, and writes an example of them all from the same schema. */
import type { Command } from 'commander';
import { type DescribedSetting, describedGroups, shownGroups } from '../config/shown-settings.ts';
import { checkedSettings } from './model-settings.ts';
import { examples, table } from './options.ts';

/** The exit code is 0, or 2 when a setting is wrong; the message then names it. */
export function registerConfigCommand(program: Command): void {
  program
    .command('config')
    .description('show every setting, its value and where it came from')
    .addHelpText('after', examples('voxgate config', 'voxgate config --example > voxgate.env'))
    .option('--json', 'print JSON')
    .option('--example', 'print a commented file of all settings, with their defaults')
    .action(({ json, example }: { json?: true; example?: true }) => {
      if (example) {
        process.stdout.write(exampleFile());
        return;
      }
      const { config, warnings } = checkedSettings(); // as `serve` does, which would not start
      const shown = shownGroups(config).flatMap(({ settings }) => settings);
      process.stdout.write(
        json
          ? `${JSON.stringify({ settings: shown, warnings }, null, 2)}\n`
          : table(shown.map(({ name, source, value }) => [name, source, value])),
      );
      if (!json) for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
    });
}

/** An environment file in which every setting is a comment with its default. */
function exampleFile(): string {
  const groups = describedGroups().map(
    ({ title, settings }) => `\n## ${title}\n\n${settings.map(exampleOf).join('\n')}`,
  );
  return `# Settings of voxgate. Every line is a comment: what is not set has its default.\n${groups.join('')}`;
}

function exampleOf({ name, description, allowed, fallback }: DescribedSetting): string {
  return `# ${description}${allowed && ` (${allowed})`}\n#${name}=${fallback}\n`;
}
