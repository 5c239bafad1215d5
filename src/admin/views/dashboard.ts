/** The frame of the dashboard. It holds no data, because it is shown before the visitor has entered a key. */
import { CATEGORIES } from '../../category.ts';
import { FILTERS, MEANINGS_OF_REQUESTS } from '../requests.ts';
import { CATEGORY_NAMES } from './format.ts';
import { type Html, html } from './html.ts';
import { layout, meanings } from './layout.ts';

export function dashboard(hasSession: boolean): Html {
  return layout(
    'Dashboard',
    html`<h1 class="visually-hidden">Dashboard</h1>
      ${polled('state', 'every 2s', 'bare')}
      <div class="pair">
        ${polled('slot', 'every 1s')}
        ${polled('upstreams', 'every 10s')}
      </div>
      ${requests}
      ${polled('log', 'every 5s')}
      ${polled('summary', 'every 2s', 'bare')}
      <section class="charts" aria-label="Traffic over time">
        ${chart('rate', 'Requests per second', 'No requests in the last three minutes.', rateNote)}
        ${chart('latency', 'Latency', NOT_MEASURED, latencyHead)}
        ${chart('rtf', 'Real-time factor', NOT_MEASURED, rtfNote)}
      </section>
      ${polled('models', 'every 5s')}
      ${polled('observability', 'every 5s')}
      ${polled('crashes', 'every 60s')}
      ${settings}`,
    hasSession,
  );
}

/** A section that polls. A poll is aborted by any other request for its section; see `request` in actions.ts. */
function polled(name: string, every: string, className = 'card'): Html {
  return html`<section id="${name}" class="${className} section-${name}" data-polled
          hx-get="admin/fragments/${name}" hx-trigger="load, refresh, ${every}" hx-sync="this:abort"
          hx-request='{"timeout": 8000}'><p class="soft loading">Loading…</p></section>`;
}

/** The filter is outside of the element that polling replaces, so it keeps what the reader has entered. */
const requests = html`<section class="card" aria-labelledby="requests-title">
        <div class="card-head"><h2 id="requests-title">Requests</h2>
          <form id="requests-filter" class="row" role="search" aria-label="Requests">
            <fieldset class="choice" aria-label="Which requests">
              ${Object.entries(FILTERS).map(
                ([name, [label]], i) =>
                  html`<label><input type="radio" name="show" value="${name}"${i === 0 && html` checked`}>${label}</label>`,
              )}
            </fieldset>
            <input type="search" name="search" maxlength="100" placeholder="id, code, client, key, model" aria-label="Search requests">
          </form></div>
        <div id="requests" data-polled hx-get="admin/fragments/requests" hx-include="#requests-filter"
          hx-trigger="load, refresh, every 2s, input from:#requests-filter delay:250ms" hx-sync="this:replace"
          hx-request='{"timeout": 8000}'><p class="soft loading">Loading…</p></div>
        ${meanings(MEANINGS_OF_REQUESTS)}
      </section>`;

/** Settings do not change while the gateway runs, so they are not polled. */
const settings = html`<details class="card settings-fold">
        <summary><h2>Settings</h2> <span class="note">values in effect and where they come from</span></summary>
        <form id="settings-filter" role="search" aria-label="Settings">
          <input type="search" name="search" maxlength="100" placeholder="name, value, meaning" aria-label="Search settings">
        </form>
        <div id="settings" data-polled hx-get="admin/fragments/settings" hx-include="#settings-filter"
          hx-trigger="load, refresh, input from:#settings-filter delay:250ms" hx-sync="this:replace"
          hx-request='{"timeout": 8000}'><p class="soft loading">Loading…</p></div>
      </details>`;

function chart(name: string, title: string, empty: string, beside: Html): Html {
  return html`<figure class="card chart chart-${name}">
          <figcaption class="card-head"><h2>${title}</h2>${beside}</figcaption>
          <div id="chart-${name}" class="plot" role="img" aria-label="${title}: nothing to show yet"></div>
          <p id="chart-${name}-empty" class="empty soft">${empty}</p>
        </figure>`;
}

const NOT_MEASURED = 'No data in the last hour.';
const rateNote = html`<p class="note">by outcome, last three minutes</p>`;
const rtfNote = html`<p class="note">median; below 1 is faster than real time</p>`;
const latencyHead = html`<p class="note">arrival to last byte</p><fieldset class="choice" aria-label="Latency of">
            ${CATEGORIES.map(
              (name, i) =>
                html`<label><input type="radio" name="latency-of" value="${name}"${
                  i === 0 && html` checked`
                }>${CATEGORY_NAMES[name]}</label>`,
            )}
          </fieldset>`;
