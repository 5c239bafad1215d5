/** What figures measure, in a fold beside them, so that keyboards, touch and screen readers reach it. */
import { type Html, html } from './html.ts';

export function meanings(entries: readonly (readonly [name: string, meaning: string])[]): Html {
  return html`<details class="meanings" data-key="meanings"><summary>What these figures mean</summary>
<dl class="fields">${entries.map(([name, meaning]) => html`<div><dt>${name}</dt><dd>${meaning}</dd></div>`)}</dl></details>`;
}
