/**
 * The captures: the page of one, its bodies as files, and its replay. A body is never shown as a page, because it may
 * hold scripts.
 */
import type { RequestHandler } from 'express';
import type { StoredCapture } from '../capture/capture-folder.ts';
import type { ReplayReport } from '../capture/replay.ts';
import { GatewayError } from '../errors.ts';
import { hasSession } from '../http/access/api-key.ts';
import { clientSignal } from '../http/server/client-signal.ts';
import { httpRefusal } from '../http/server/refusals.ts';
import { REQUEST_ID } from '../http/server/request-id.ts';
import { sendEither, sendHtml } from './answer.ts';
import type { CaptureActions } from './capture-actions.ts';
import { type BodyContent, contentOf } from './capture-bodies.ts';
import type { AdminDeps } from './deps.ts';
import { button } from './views/actions.ts';
import { bytes, milliseconds } from './views/format.ts';
import { type Html, html } from './views/html.ts';
import { layout } from './views/layout.ts';

/** These request ids must never become a path, because they would lead to another folder. */
const DOTS = /^\.{1,2}$/;

async function find(captures: CaptureActions, id: string): Promise<StoredCapture> {
  const found = REQUEST_ID.test(id) && !DOTS.test(id) ? await captures.find(id) : null;
  if (found === null) throw gone();
  return found;
}

function removedMeanwhile(error: NodeJS.ErrnoException): never {
  throw error.code === 'ENOENT' ? gone() : error;
}

/** Plays a sound. A player takes no notice of the headers by which a browser would never show it as a page. */
export function playBody(captures: CaptureActions, body: 'request' | 'response'): RequestHandler {
  return async (req, res) => {
    const id = String(req.params.requestId);
    const { sound } = await contentOf(await find(captures, id), body).catch(removedMeanwhile);
    if (sound === null) throw gone();
    const { length } = sound.bytes;
    res.attachment(`${id}-${body}`).type(sound.type);
    res.set({
      'Cache-Control': 'no-store',
      'Content-Security-Policy': "sandbox; default-src 'none'",
      'Accept-Ranges': 'bytes',
    });
    const ranges = req.range(length);
    if (ranges === -1) throw httpRefusal(416);
    const range =
      Array.isArray(ranges) && ranges.type === 'bytes' && ranges.length === 1 ? ranges[0] : undefined;
    if (range === undefined) return void res.end(sound.bytes);
    res.status(206).set('Content-Range', `bytes ${range.start}-${range.end}/${length}`);
    res.end(sound.bytes.subarray(range.start, range.end + 1));
  };
}

const gone = () => new GatewayError('capture_not_found', {});

export function showCapture(captures: CaptureActions): RequestHandler {
  return async (req, res) => {
    const id = String(req.params.requestId);
    const capture = await find(captures, id);
    const bodies = await Promise.all([contentOf(capture, 'request'), contentOf(capture, 'response')]).catch(
      removedMeanwhile,
    );
    sendHtml(res, capturePage(id, capture, bodies, hasSession(res)));
  };
}

/** Sends a body as a file to download, because it may be anything, also a page with scripts. */
export function downloadBody(captures: CaptureActions, file: 'req.bin' | 'resp.bin'): RequestHandler {
  return async (req, res, next) => {
    const id = String(req.params.requestId);
    const { path } = await find(captures, id);
    res.attachment(`${id}-${file}`).type('application/octet-stream').set('Cache-Control', 'no-store');
    res.sendFile(file, { root: path, cacheControl: false }, (error) => {
      // A 404 means that the capture was removed meanwhile. Other errors, such as a bad range, are passed on.
      const isGone = error && 'status' in error && error.status === 404;
      if (error && !res.headersSent && !res.destroyed) next(isGone ? gone() : error);
    });
  };
}

export function replayCapture({
  captures,
  shutdown,
}: Pick<AdminDeps, 'captures' | 'shutdown'>): RequestHandler {
  return async (req, res) => {
    const id = String(req.params.requestId);
    const signal = clientSignal(res, shutdown);
    const report = await captures.replay(await find(captures, id), signal);
    sendEither(req, res, replayView(id, report), report);
  };
}

/** From the page of a capture to `/`. */
const ROOT = '../../';
const pathOf = (requestId: string) => `${ROOT}admin/captures/${encodeURIComponent(requestId)}`;

/** The page of a captured request: its meta data, its two bodies as downloads, and its replay. */
function capturePage(
  requestId: string,
  capture: StoredCapture,
  [request, answer]: readonly BodyContent[],
  hasSession: boolean,
): Html {
  const here = pathOf(requestId);
  return layout(
    `Capture ${requestId}`,
    html`<div class="capture-title"><p><a href="${ROOT}admin">Dashboard</a></p><h1>Request <code>${requestId}</code></h1>
      <p class="soft">Stored in <code>${capture.path}</code>. Bodies are stored as sent, including any secrets in them.</p></div>
      <div class="pair">
        <section class="card bodies" aria-labelledby="bodies-title">
          <h2 id="bodies-title">Bodies</h2>
          <p class="row"><a class="button" href="${here}/req.bin" download>Request, ${bytes(capture.requestBytes)}</a>
          <a class="button" href="${here}/resp.bin" download>Answer, ${bytes(capture.responseBytes)}</a></p>
        </section>
        <section id="replay" class="card">${replayView(requestId, null)}</section>
      </div>
      ${contentView('Request', 'req', here, request)}
      ${contentView('Answer', 'resp', here, answer)}
      <section class="card bodies" aria-labelledby="meta-title">
        <h2 id="meta-title">meta.json</h2>
        <pre class="meta" tabindex="0" aria-label="meta.json">${JSON.stringify(capture.meta, null, 2)}</pre>
      </section>`,
    hasSession,
    ROOT,
  );
}

/** The sound, the fields and the text of a body; nothing for one that has none of them. */
function contentView(title: string, file: string, here: string, content?: BodyContent): Html | null {
  if (content === undefined) return null;
  const { sound, fields, text } = content;
  if (sound === null && fields.length === 0 && text === null) return null;
  return html`<section class="card bodies" aria-labelledby="${file}-title">
        <h2 id="${file}-title">${title}</h2>
        ${sound !== null && html`<audio controls preload="none" src="${here}/${file}.sound" aria-label="Sound of the ${title.toLowerCase()}"></audio>`}
        ${fields.length > 0 && html`<dl class="fields">${fields.map(({ name, value }) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`}
        ${text !== null && html`<pre class="meta" tabindex="0" aria-label="Text of the ${title.toLowerCase()}">${text}</pre>`}
      </section>`;
}

function replayView(requestId: string, report: ReplayReport | null): Html {
  return html`<div class="card-head"><h2>Replay</h2>${button({
    label: 'Replay',
    post: `${pathOf(requestId)}/replay`,
    section: 'replay',
    key: 'replay',
  })}</div>
<div role="status">${
    report === null
      ? html`<p class="soft" data-key="before">Sends the request to this gateway again and compares the answers.</p>`
      : html`<p class="notice ${report.same ? '' : 'warn'}" data-key="report">${report.summary}</p>
<dl class="figures two" data-key="figures"><div><dt>Status then</dt><dd>${report.status.captured}</dd></div><div><dt>now</dt><dd>${report.status.now}</dd></div>
<div><dt>Latency then</dt><dd>${milliseconds(report.latencyMs.captured)}</dd></div><div><dt>now</dt><dd>${milliseconds(report.latencyMs.now)}</dd></div></dl>`
  }</div>`;
}
