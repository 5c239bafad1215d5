/** `voxgate config` shows every setting, and writes an example of them all from the same schema. */
import type { Command } from 'commander';
import { z } from 'zod';
import { type Config, givenSettings, readConfig, SETTING_GROUPS, settings } from '../config/config.ts';
import { MASK, withoutLogin } from '../config/kinds.ts';
import { checkModelSettings } from './model-settings.ts';
import { examples } from './options.ts';

type Source = 'environment' | 'default' | 'derived' | 'unset';

interface ShownSetting {
  name: string;
  /** As text; a secret is masked, and what is not set is empty. */
  value: string;
  /** `derived`: found on this machine, because the setting is absent and has no fixed default. */
  source: Source;
  description: string;
}

const MIB = 1024 * 1024;

/** What the settings without a fixed default become when they are absent. */
const DERIVED: Readonly<Record<string, (config: Config) => string | number>> = {
  SVC_MODEL_DIR: ({ modelDir }) => modelDir,
  SVC_MODEL_MEMORY_MB: ({ modelMemoryBytes }) => Math.floor(modelMemoryBytes / MIB),
  SVC_THREADS: ({ threads }) => threads,
  SVC_TMP_DIR: ({ tmpDir }) => tmpDir,
};

/** The exit code is 0, or 2 when a setting is wrong; the message then names it. */
export function registerConfigCommand(
  program: Command,
  stdout: NodeJS.WritableStream = process.stdout,
): void {
  program
    .command('config')
    .description('show every setting, its value and where it came from')
    .addHelpText('after', examples('voxgate config', 'voxgate config --example > voxgate.env'))
    .option('--json', 'print JSON')
    .option('--example', 'print a commented file of all settings, with their defaults')
    .action(({ json, example }: { json?: true; example?: true }) => {
      if (example) {
        stdout.write(exampleFile());
        return;
      }
      const { config, warnings } = readConfig();
      checkModelSettings(config); // as `serve` does, which would not start
      const shown = showSettings(config, givenSettings());
      stdout.write(json ? `${JSON.stringify({ settings: shown, warnings }, null, 2)}\n` : table(shown));
      if (!json) for (const warning of warnings) process.stderr.write(`warning: ${warning}\n`);
    });
}

/** @param given the texts of the settings that are set, by name */
function showSettings(config: Config, given: Readonly<Record<string, string>>): ShownSetting[] {
  const described = describedGroups().flatMap((group) => group.settings);
  return described.map(({ name, description, secret, fallback }) => {
    const set = given[name];
    if (set !== undefined)
      return { name, value: secret ? MASK : withoutLogin(set), source: 'environment', description };
    const derived = DERIVED[name]?.(config);
    if (derived !== undefined) return { name, value: String(derived), source: 'derived', description };
    return { name, value: fallback, source: fallback === '' ? 'unset' : 'default', description };
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

interface DescribedSetting {
  name: string;
  description: string;
  secret: boolean;
  /** The values that it may have; '' where the description says it. */
  allowed: string;
  /** The default as text; '' where there is none, or it depends on the machine. */
  fallback: string;
}

/** Every setting of the schema, in its groups. */
export function describedGroups(): { title: string; settings: DescribedSetting[] }[] {
  const absent: Record<string, unknown> = settings.parse({});
  return Object.entries(SETTING_GROUPS).map(([title, group]) => ({
    title,
    settings: Object.entries<z.ZodType>(group).map(([name, kind]) => describe(name, kind, absent[name])),
  }));
}

function describe(name: string, kind: z.ZodType, fallback: unknown): DescribedSetting {
  const { description = '', secret = false } = kind.meta() ?? {};
  const allowed = typeof fallback === 'boolean' ? 'on, off' : allowedBy(kind);
  return { name, description, secret: secret === true, allowed, fallback: asText(fallback) };
}

/** '' for what is no number and no choice. */
function allowedBy(kind: z.ZodType): string {
  const schema = z.toJSONSchema(kind, { unrepresentable: 'any' });
  if (schema.enum !== undefined) return schema.enum.join(', ');
  if (schema.minimum === undefined) return '';
  return `${schema.minimum} to ${schema.maximum}${schema.type === 'integer' ? ', whole' : ''}`;
}

/** A value as its setting takes it. */
function asText(value: unknown): string {
  if (value === undefined) return '';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return typeof value === 'object' ? Object.values(value ?? {}).join(',') : String(value);
}

function table(shown: readonly ShownSetting[]): string {
  const width = Math.max(...shown.map(({ name }) => name.length));
  const sources = Math.max(...shown.map(({ source }) => source.length));
  const lines = shown.map(({ name, source, value }) =>
    `${name.padEnd(width)}  ${source.padEnd(sources)}  ${value}`.trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}
