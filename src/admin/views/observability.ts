/** The section for what is recorded: the three switches, and the captures on disk. */
import { TOGGLE_KEYS, type ToggleKey } from '../../observability/toggles.ts';
import { button, outcome, request } from './actions.ts';
import { bytes, counted } from './format.ts';
import { type Html, html } from './html.ts';

export interface ObservabilityState {
  toggles: Readonly<Record<ToggleKey, boolean>>;
  captureDir: string;
  captures: number;
  bytes: number;
}

const SWITCHES: Readonly<Record<ToggleKey, [name: string, note: string]>> = {
  metrics: ['Metrics', 'counts and latencies, in memory'],
  access_log: ['Access log', 'a line for every request'],
  payload: ['Payload capture', 'bodies of requests and answers, unchanged'],
};

export function observabilityView(state: ObservabilityState, said: string | null = null): Html {
  return html`<div class="card-head"><h2>What is kept</h2><span class="note">until the next restart</span></div>
${outcome(said)}
<ul class="switches">${TOGGLE_KEYS.map((key) => switchRow(key, state.toggles[key]))}</ul>
<div class="captures">
<p><b>${counted(state.captures, 'capture')}</b>, ${bytes(state.bytes)} <span class="note">in <code>${state.captureDir}</code></span></p>
${
  state.captures > 0 &&
  button({
    label: 'Delete all',
    fullLabel: 'Delete all captures',
    className: 'small danger',
    post: '/admin/api/observability/clear-payload',
    section: 'observability',
    key: 'clear',
    confirm: 'Delete every captured request and answer from disk?',
  })
}</div>`;
}

function switchRow(key: ToggleKey, on: boolean): Html {
  const [name, note] = SWITCHES[key];
  const asked = { label: name, post: '/admin/api/observability/toggle', section: 'observability' };
  return html`<li data-key="${key}"><span><span id="switch-${key}">${name}</span><span class="note" id="switch-${key}-note">${note}</span></span>
<button type="button" class="switch" role="switch" aria-checked="${String(on)}" aria-labelledby="switch-${key}" aria-describedby="switch-${key}-note"
${request({ ...asked, values: { key, value: on ? 'off' : 'on' } })}><span class="knob"></span></button></li>`;
}
