/** Explains figures in a `<details>` beside them, and not in a tooltip, which keyboards and touch do not reach. */
import { type Html, html } from './html.ts';

export function meanings(entries: readonly (readonly [name: string, meaning: string])[]): Html {
  return html`<details class="meanings" data-key="meanings"><summary>What these figures mean</summary>
<dl class="fields">${entries.map(([name, meaning]) => html`<div><dt>${name}</dt><dd>${meaning}</dd></div>`)}</dl></details>`;
}
