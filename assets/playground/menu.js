/** A menu that opens below its button, and closes with Escape, with a choice, and where the focus or a click goes elsewhere. */

/** @param menu a `details` whose `summary` is the button */
export function createMenu(menu, onChoice) {
  const summary = menu.querySelector('summary');
  const close = () => {
    const hadFocus = menu.contains(document.activeElement);
    menu.open = false;
    if (hadFocus) summary.focus();
  };
  menu.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && menu.open) close();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    menu.open = true;
    const items = [...menu.querySelectorAll('button:not([hidden])')];
    const at = items.indexOf(document.activeElement);
    items[(at < 0 && step < 0 ? items.length - 1 : at + step + items.length) % items.length].focus();
  });
  menu.addEventListener('focusout', ({ relatedTarget }) => {
    if (relatedTarget !== null && !menu.contains(relatedTarget)) menu.open = false;
  });
  addEventListener('pointerdown', ({ target }) => {
    if (!menu.contains(target)) menu.open = false;
  });
  menu.addEventListener('click', ({ target }) => {
    const button = target.closest('button');
    if (button === null) return;
    close();
    onChoice(button);
  });
}
