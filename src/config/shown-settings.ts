/** The settings in words: what each means and may be, the value that it has, and where that came from. */
import { z } from 'zod';
import { type Config, type GivenSetting, SETTING_GROUPS, settings } from './config.ts';

/** `derived`: found on this machine, because the setting is absent and has no fixed default. */
type Source = GivenSetting['source'] | 'default' | 'derived' | 'unset';

export interface ShownSetting {
  name: string;
  /** As text; a secret is masked, and what is not set is empty. */
  value: string;
  source: Source;
  description: string;
  secret: boolean;
}

export interface SettingGroup {
  title: string;
  settings: ShownSetting[];
}

const MIB = 1024 * 1024;

/** What the settings without a fixed default become when they are absent. */
const DERIVED: Readonly<Record<string, (config: Config) => string | number>> = {
  SVC_MODEL_DIR: ({ modelDir }) => modelDir,
  SVC_MODEL_MEMORY_MB: ({ modelMemoryBytes }) => Math.floor(modelMemoryBytes / MIB),
  SVC_THREADS: ({ threads }) => threads,
  SVC_TMP_DIR: ({ tmpDir }) => tmpDir,
};

/** Every setting as it is now, in its groups. */
export function shownGroups(config: Config): SettingGroup[] {
  return describedGroups().map(({ title, settings }) => ({
    title,
    settings: settings.map(({ name, description, secret, fallback }): ShownSetting => {
      const about = { description, secret };
      const given = config.given[name];
      if (given !== undefined) return { name, ...given, ...about };
      const derived = DERIVED[name]?.(config);
      if (derived !== undefined) return { name, value: String(derived), source: 'derived', ...about };
      return { name, value: fallback, source: fallback === '' ? 'unset' : 'default', ...about };
    }),
  }));
}

export interface DescribedSetting {
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
