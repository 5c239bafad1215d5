/** What is recorded, on the dashboard: its switches, the deletion of all captures, and the last lines of the log. */
import type { RequestHandler } from 'express';
import { invalidValue } from '../errors.ts';
import { isToggleKey, TOGGLE_KEYS, type ToggleKey } from '../observability/toggles.ts';
import { isTruthy } from '../truthy.ts';
import { sendHtml } from './answer.ts';
import type { AdminDeps } from './deps.ts';
import { readForm } from './form.ts';
import { button, outcome, request } from './views/actions.ts';
import { bytes, counted } from './views/format.ts';
import { type Html, html } from './views/html.ts';

type Deps = Pick<AdminDeps, 'toggles' | 'captures' | 'log'>;

export function toggle(deps: Deps): RequestHandler {
  return async (req, res) => {
    const { key, value } = await readForm(req, res);
    if (!isToggleKey(key)) {
      throw invalidValue('key', key, `Expected ${TOGGLE_KEYS.join(', ')}`);
    }
    if (typeof value !== 'string') {
      throw invalidValue('value', value, 'Expected one text; 1, on, true, yes or y turn it on');
    }
    deps.toggles[key] = isTruthy(value);
    deps.log.info('switched by the operator', { key, on: deps.toggles[key] });
    sendHtml(res, await observabilityView(deps));
  };
}

export function clearPayload(deps: Deps): RequestHandler {
  return async (_req, res) => {
    const deleted = await deps.captures.clear();
    deps.log.info('captures deleted by the operator', { deleted });
    sendHtml(res, await observabilityView(deps, `${counted(deleted, 'capture')} deleted.`));
  };
}

const SWITCHES: Readonly<Record<ToggleKey, [name: string, note: string]>> = {
  metrics: ['Metrics', 'counts and timings, kept in memory'],
  access_log: ['Access log', 'one line per request, health checks excepted'],
  payload: ['Payload capture', 'requests and answers in full, on disk'],
};

/** The section for what is recorded: the three switches, and the captures on disk. */
export async function observabilityView(
  { toggles, captures: { dir, usage } }: Pick<Deps, 'toggles' | 'captures'>,
  said: string | null = null,
): Promise<Html> {
  const { captures, bytes: size } = await usage();
  return html`<div class="card-head"><h2>Recording</h2><span class="note">changes last until the next restart</span></div>
${outcome(said)}
<ul class="switches">${TOGGLE_KEYS.map((key) => switchRow(key, toggles[key]))}</ul>
<div class="captures">
<p><b>${counted(captures, 'capture')}</b>, ${bytes(size)} <span class="note">in <code>${dir}</code></span></p>
${
  captures > 0 &&
  button({
    label: 'Delete all',
    fullLabel: 'Delete all captures',
    className: 'small danger',
    post: 'admin/api/observability/clear-payload',
    section: 'observability',
    key: 'clear',
    confirm: 'Delete all captured requests and answers from disk?',
  })
}</div>`;
}

function switchRow(key: ToggleKey, on: boolean): Html {
  const [name, note] = SWITCHES[key];
  const asked = { label: name, post: 'admin/api/observability/toggle', section: 'observability' };
  return html`<li data-key="${key}"><span><span id="switch-${key}">${name}</span><span class="note" id="switch-${key}-note">${note}</span></span>
<button type="button" class="switch" role="switch" aria-checked="${String(on)}" aria-labelledby="switch-${key}" aria-describedby="switch-${key}-note"
${request({ ...asked, values: { key, value: on ? 'off' : 'on' } })}><span class="knob"></span></button></li>`;
}

/** Only what went wrong is marked: most lines say what is usual. */
const BADGES = { error: 'badge bad', warn: 'badge warn', info: 'badge', debug: 'badge' } as const;

/**
 * The last lines of the log, newest first, so that "see the log" needs no shell. A line keeps its element while it is
 * there, so that text selected in it stays selected.
 */
export function logView(lines: ReturnType<AdminDeps['logLines']>): Html {
  return html`<div class="card-head"><h2>Log</h2>${
    lines.length > 0 && html`<span class="note">${counted(lines.length, 'line')}, newest first</span>`
  }</div>
${
  lines.length === 0
    ? html`<p class="soft" data-key="none">Nothing logged since the start.</p>`
    : html`<ol class="log" data-key="lines" tabindex="0" role="region" aria-label="Lines of the log">${lines.map(
        ({ number, text, level }) =>
          html`<li data-key="line-${number}">${
            (level === 'error' || level === 'warn') && html`<span class="${BADGES[level]}">${level}</span> `
          }<code>${text}</code></li>`,
      )}</ol>`
}`;
}
