/** The request as code: one card, which moves to the open tab and shows the choices made there. */
import { hasKey } from './request.js';
import { SNIPPETS } from './snippets.js';
import { copy } from './take.js';

/**
 * @param parts elements by name: card, text, curl (the label of that choice), copy, status
 * @param choices by tab, () => the choices that its snippets take
 */
export function createCode({ card, text, curlName, copy: button, note }, choices) {
  const radios = [...card.querySelectorAll('[type="radio"]')];
  let tab = Object.keys(choices)[0];

  function show() {
    if (!(tab in choices)) return;
    const { value } = radios.find(({ checked }) => checked);
    text.textContent = SNIPPETS[tab][value]({
      base: new URL('.', location.href).href.slice(0, -1),
      withKey: hasKey(),
      ...choices[tab](),
    });
  }

  for (const radio of radios) radio.addEventListener('change', show);
  button.addEventListener('click', async () => {
    note.textContent = await copy(text.textContent, button, text);
  });
  for (const event of ['input', 'change']) document.getElementById('main').addEventListener(event, show);

  return {
    show,
    /** Moves to the tab that was opened. */
    open(name) {
      tab = name;
      const panel = document.getElementById(`panel-${name}`);
      if (name in choices) (panel.querySelector(':scope > div.stack') ?? panel).append(card);
      curlName.textContent = name === 'live' ? 'voxgate' : 'curl';
      show();
    },
  };
}
