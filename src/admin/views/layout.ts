/** The parts that all admin pages share: head, top bar and dialogs. The playground has a copy of the same top bar. */
import { type Html, html } from './html.ts';

/** htmx must not add styles of its own or use eval, because the content security policy allows neither. */
const HTMX_CONFIG = JSON.stringify({
  includeIndicatorStyles: false,
  allowEval: false,
  historyEnabled: false,
});

/**
 * @param hasSession whether there is a session to sign out of; the script shows the button when one begins later
 * @param root leads from the page to `/`. No link begins with `/`, because a proxy may serve the gateway below a path.
 */
export function layout(title: string, page: Html, hasSession: boolean, root = ''): Html {
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="htmx-config" content="${HTMX_CONFIG}">
    <title>${title} · voxgate</title>
    <link rel="icon" href="${root}assets/voxgate.svg" type="image/svg+xml">
    <link rel="stylesheet" href="${root}assets/vendor/uPlot.min.css">
    <link rel="stylesheet" href="${root}assets/voxgate.css">
    <link rel="stylesheet" href="${root}assets/admin.css">
    <script src="${root}assets/vendor/htmx.min.js" defer></script>
    <script src="${root}assets/vendor/uPlot.iife.min.js" defer></script>
    <script type="module" src="${root}assets/admin.js"></script>
  </head>
  <body hx-ext="polite" hx-swap="polite">
    <a class="skip" href="#main">Skip to the content</a>
    <header class="bar">
      <a class="brand" href="${root}playground"><img src="${root}assets/voxgate.svg" alt="" width="28" height="28">voxgate</a>
      <nav aria-label="Pages">
        <a href="${root}playground">Playground</a>
        <a href="${root}admin" aria-current="page">Dashboard</a>
        <a href="${root}docs">API</a>
      </nav>
      <button id="sign-out" class="small" type="button"${!hasSession && html` hidden`}>Sign out</button>
    </header>
    <main id="main" class="page admin">
      <div id="notices" class="notices" aria-live="assertive">
        <p id="unreachable" class="notice bad" hidden></p>
        <div id="locked" class="notice warn row" hidden>
          <span>This gateway needs an API key. Nothing is shown without one.</span>
          <button id="unlock" class="small" type="button">Enter the key</button>
        </div>
        <div id="failed" class="notice bad row" hidden>
          <span id="failed-text"></span>
          <button id="failed-close" class="small" type="button">Dismiss</button>
        </div>
      </div>
      ${page}
    </main>
    ${confirmation}
    ${keyQuestion}
  </body>
</html>
`;
}

/** Explains figures in a `<details>` beside them, and not in a tooltip, which keyboards and touch do not reach. */
export function meanings(entries: readonly (readonly [name: string, meaning: string])[]): Html {
  return html`<details class="meanings" data-key="meanings"><summary>What these figures mean</summary>
<dl class="fields">${entries.map(([name, meaning]) => html`<div><dt>${name}</dt><dd>${meaning}</dd></div>`)}</dl></details>`;
}

const confirmation = html`<dialog id="confirm-dialog" aria-labelledby="confirm-text">
      <form method="dialog">
        <h2 id="confirm-text"></h2>
        <div class="row">
          <button id="confirm-yes" class="danger" type="submit" value="yes"></button>
          <button type="submit" value="no" autofocus>Cancel</button>
        </div>
      </form>
    </dialog>`;

const keyQuestion = html`<dialog id="key-dialog" aria-labelledby="key-title">
      <form method="dialog">
        <h2 id="key-title">This gateway needs an API key</h2>
        <p id="key-wrong" class="notice bad" role="alert" hidden>That key was not accepted.</p>
        <div class="field">
          <label for="key">API key</label>
          <input id="key" type="password" autocomplete="off" required>
          <p class="note">This browser stores a cookie, not the key.</p>
        </div>
        <div class="row">
          <button class="primary" type="submit" value="use">Use this key</button>
          <button id="key-cancel" type="button">Cancel</button>
        </div>
      </form>
    </dialog>`;
