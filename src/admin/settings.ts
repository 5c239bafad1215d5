/** The settings on the dashboard: the value of each, and where it came from. What is typed filters them. */
import type { SettingGroup, ShownSetting } from '../config/shown-settings.ts';
import { counted } from './views/format.ts';
import { type Html, html } from './views/html.ts';

/** What a search looks at: all that a row shows. */
const textOf = (setting: ShownSetting) =>
  [setting.name, shownValue(setting), SOURCES[setting.source], setting.description].join(' ').toLowerCase();

const shownValue = ({ secret, value }: ShownSetting) => (secret && value !== '' ? 'set' : value);

const SOURCES: Readonly<Record<ShownSetting['source'], string>> = {
  environment: 'environment',
  file: 'file',
  program: 'program',
  default: 'default',
  derived: 'this machine',
  unset: 'not set',
};

/** @param sought a text in lower case; the settings without it are left out */
export function settingsView(all: readonly SettingGroup[], sought: string): Html {
  const groups = all
    .map((group) => ({ ...group, settings: group.settings.filter((one) => textOf(one).includes(sought)) }))
    .filter((group) => group.settings.length > 0);
  const count = groups.reduce((sum, { settings }) => sum + settings.length, 0);
  return html`<p class="note" role="status" data-key="count">${counted(count, 'setting')}</p>
${
  count > 0 &&
  html`<table class="cards settings" data-key="table"><thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">From</th></tr></thead>
${groups.map(
  ({ title, settings }) =>
    html`<tbody data-key="${title}"><tr data-key="title"><th scope="rowgroup" colspan="3" class="group">${title}</th></tr>${settings.map(settingRow)}</tbody>`,
)}</table>`
}`;
}

function settingRow(setting: ShownSetting): Html {
  const { name, source, description } = setting;
  const isSet = source === 'environment' || source === 'file' || source === 'program';
  const value = shownValue(setting);
  return html`<tr data-key="${name}"><th scope="row"><code>${name}</code><span class="note">${plain(description)}</span></th>
<td class="value">${value === '' ? '–' : html`<code>${value}</code>`}</td><td><span class="badge${isSet && ' accent'}">${SOURCES[source]}</span></td></tr>`;
}

/** The marks of Markdown are for the documents. */
const plain = (description: string) => description.replaceAll('`', '');
