/** The recorded crashes of the server on the dashboard, as JSON and as a section of the page. */
import type { CrashRecord } from '../crashes/crashes.ts';
import { counted, duration } from './views/format.ts';
import { type Html, html } from './views/html.ts';

export function crashToWire({ uptimeSec, exitCode, requestId, ...rest }: CrashRecord) {
  return { ...rest, uptime_sec: uptimeSec, exit_code: exitCode, request_id: requestId };
}

const SHOWN = 10;

/** The section that lists the crashes: when and how the server ended, and which request held the slot. */
export function crashesView(crashes: readonly CrashRecord[]): Html {
  return html`<div class="card-head"><h2>Crashes</h2>${
    crashes.length > 0 && html`<span class="note">${counted(crashes.length, 'record')}</span>`
  }</div>
${
  crashes.length === 0
    ? html`<p class="soft" data-key="none">No crashes recorded.</p>`
    : html`<div class="table-scroll" data-key="table" tabindex="0" role="region" aria-label="Crashes"><table>
<thead><tr><th scope="col">Time</th><th scope="col">Exit</th><th scope="col">Uptime</th><th scope="col">Request in progress</th><th scope="col">Last output</th></tr></thead>
<tbody>${crashes.slice(0, SHOWN).map(row)}</tbody></table></div>`
}`;
}

function row({ at, pid, signal, exitCode, uptimeSec, requestId, message, lines }: CrashRecord): Html {
  const end = signal ?? (exitCode === null ? 'unknown' : `exit ${exitCode}`);
  return html`<tr data-key="${at} ${pid}">
<td><time datetime="${at}">${at.slice(0, 19).replace('T', ' ')}</time></td><td><span class="badge bad">${end}</span></td>
<td>${duration(uptimeSec * 1000)}</td>
<td>${requestId === null ? '–' : html`<code>${requestId}</code>`}</td><td class="words">${lastOutput(message, lines)}</td></tr>`;
}

/** The message, or the last line; the other lines open below it. */
function lastOutput(message: string, lines: readonly string[]): Html {
  const words = (message || (lines.at(-1) ?? '')).split('\n', 1)[0]?.slice(0, 200);
  return lines.length < 2
    ? html`${words}`
    : html`<details data-key="output"><summary>${words}</summary><pre tabindex="0" aria-label="Last output">${lines.join('\n')}</pre></details>`;
}
