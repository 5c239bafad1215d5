/** The frame of the dashboard. It holds no data, because it is shown before the visitor has entered a key. */
import { CATEGORIES } from '../../category.ts';
import { CATEGORY_NAMES } from './format.ts';
import { type Html, html } from './html.ts';
import { layout } from './layout.ts';

export function dashboard(hasSession: boolean): Html {
  return layout(
    'Dashboard',
    html`<h1 class="visually-hidden">Dashboard</h1>
      <div class="pair uneven">
        ${polled('slot', 'every 1s')}
        ${polled('observability', 'every 5s')}
      </div>
      ${polled('summary', 'every 2s', 'bare')}
      <section class="charts" aria-label="Traffic over time">
        ${chart('rate', 'Requests per second', 'No requests in the last three minutes.', rateNote)}
        ${chart('latency', 'Latency', NOT_MEASURED, categoryChoice)}
        ${chart('rtf', 'Real-time factor', NOT_MEASURED, rtfNote)}
      </section>
      ${polled('models', 'every 5s')}
      ${polled('upstreams', 'every 10s')}
      ${polled('requests', 'every 2s')}
      ${polled('crashes', 'every 60s')}`,
    hasSession,
  );
}

/** A section that polls. A poll is aborted by any other request for its section; see `request` in actions.ts. */
function polled(name: string, every: string, className = 'card'): Html {
  return html`<section id="${name}" class="${className} section-${name}" data-polled
          hx-get="admin/fragments/${name}" hx-trigger="load, refresh, ${every}" hx-sync="this:abort"
          hx-request='{"timeout": 8000}'><p class="soft">Loading…</p></section>`;
}

function chart(name: string, title: string, empty: string, beside: Html): Html {
  return html`<figure class="card chart chart-${name}">
          <figcaption class="card-head"><h2>${title}</h2>${beside}</figcaption>
          <div id="chart-${name}" class="plot" role="img" aria-label="${title}: nothing to show yet"></div>
          <p id="chart-${name}-empty" class="empty soft">${empty}</p>
        </figure>`;
}

const NOT_MEASURED = 'Nothing was measured in the last hour.';
const rateNote = html`<p class="note">by outcome, the last three minutes</p>`;
const rtfNote = html`<p class="note">median; below 1 is faster than real time</p>`;
const categoryChoice = html`<fieldset class="choice" aria-label="Latency of">
            ${CATEGORIES.map(
              (name, i) =>
                html`<label><input type="radio" name="latency-of" value="${name}"${
                  i === 0 && html` checked`
                }>${CATEGORY_NAMES[name]}</label>`,
            )}
          </fieldset>`;
