/** The tables of docs/configuration.md, made from the schema of the settings. */
import { describedGroups } from '../config/shown-settings.ts';

/** The defaults that depend on the machine. */
const DERIVED: Readonly<Record<string, string>> = {
  SVC_MODEL_DIR: '`$XDG_CACHE_HOME/voxgate/models`, else `~/.cache/voxgate/models`',
  SVC_MODEL_MEMORY_MB: 'three quarters of the memory',
  SVC_THREADS: "physical cores, or the container's quota",
  SVC_TMP_DIR: "the system's",
};

/** Where the documents say more of a setting. */
const SEE: Readonly<Record<string, string>> = {
  SVC_WYOMING_PORT: '[below](#wyoming)',
  SVC_MODEL_ALIASES: '[below](#model-aliases)',
  SVC_MODEL_MEMORY_MB: '[below](#memory-of-models)',
  SVC_DEVICE: '[below](#the-gpu)',
  SVC_CPU: '[below](#the-cpu)',
  SVC_MAX_WAIT_SEC: '[API](api.md#waiting-for-the-slot)',
  SVC_CORS_ORIGINS: '[below](#other-sites)',
  SVC_ALLOWED_HOSTS: '[below](#names)',
  SVC_TRUST_PROXY: '[below](#reverse-proxies)',
};

const MARKED = /(?<=<!-- settings -->\n\n).*?(?=\n\n<!-- \/settings -->)/s;

/** @returns the document with the tables between its marks made anew */
export function withSettingsTables(document: string): string {
  if (!MARKED.test(document)) throw new Error('The document has no marks of the tables of settings');
  return document.replace(MARKED, settingsTables);
}

function settingsTables(): string {
  return describedGroups()
    .map(({ title, settings }) => {
      const rows = settings.map(({ name, description, allowed, fallback }) => [
        `\`${name}\``,
        DERIVED[name] ?? (fallback === '' ? '' : `\`${fallback}\``),
        allowed,
        name in SEE ? `${description}, see ${SEE[name]}` : description,
      ]);
      return `### ${title}\n\n${markdownTable([['Name', 'Default', 'Allowed', 'Meaning'], ...rows])}`;
    })
    .join('\n\n');
}

/** Pads the cells as Biome does. */
function markdownTable([head = [], ...rows]: readonly (readonly string[])[]): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
