/** The page of a captured request: its meta data, its two bodies as downloads, and its replay. */

import type { StoredCapture } from '../../capture/capture-folder.ts';
import type { ReplayReport } from '../../capture/replay.ts';
import { button } from './actions.ts';
import { bytes, milliseconds } from './format.ts';
import { type Html, html } from './html.ts';
import { layout } from './layout.ts';

export function capturePage(requestId: string, capture: StoredCapture, hasSession: boolean): Html {
  const here = `/admin/captures/${encodeURIComponent(requestId)}`;
  return layout(
    `Capture ${requestId}`,
    html`<div class="capture-title"><p><a href="/admin">Dashboard</a></p><h1>Request <code>${requestId}</code></h1>
      <p class="soft">Kept in <code>${capture.path}</code>. The bodies are as they were sent; secrets in them are not hidden.</p></div>
      <div class="pair">
        <section class="card bodies" aria-labelledby="bodies-title">
          <h2 id="bodies-title">Bodies</h2>
          <p class="row"><a class="button" href="${here}/req.bin" download>Request, ${bytes(capture.requestBytes)}</a>
          <a class="button" href="${here}/resp.bin" download>Answer, ${bytes(capture.responseBytes)}</a></p>
        </section>
        <section id="replay" class="card">${replayView(requestId, null)}</section>
      </div>
      <section class="card bodies" aria-labelledby="meta-title">
        <h2 id="meta-title">meta.json</h2>
        <pre class="meta" tabindex="0" aria-label="meta.json">${JSON.stringify(capture.meta, null, 2)}</pre>
      </section>`,
    hasSession,
  );
}

export function replayView(requestId: string, report: ReplayReport | null): Html {
  return html`<div class="card-head"><h2>Send it again</h2>${button({
    label: 'Replay',
    post: `/admin/captures/${encodeURIComponent(requestId)}/replay`,
    section: 'replay',
    key: 'replay',
  })}</div>
<div role="status">${
    report === null
      ? html`<p class="soft" data-key="before">Sends the request to this gateway and compares the answers.</p>`
      : html`<p class="notice ${report.same ? '' : 'warn'}" data-key="report">${report.summary}</p>
<dl class="figures two" data-key="figures"><div><dt>Status then</dt><dd>${report.status.captured}</dd></div><div><dt>now</dt><dd>${report.status.now}</dd></div>
<div><dt>Latency then</dt><dd>${milliseconds(report.latencyMs.captured)}</dd></div><div><dt>now</dt><dd>${milliseconds(report.latencyMs.now)}</dd></div></dl>`
  }</div>`;
}
