/** A button that is held while its visitor talks. Who cannot hold one presses it shortly, and again at the end. */

/** A press that is shorter leaves the button down. */
const TAP_MS = 300;

/** @param on begin(), end() */
export function createTalkButton(button, on) {
  let isDown = false;
  let pressedAt = 0;

  function show(next) {
    isDown = next;
    button.setAttribute('aria-pressed', String(next));
    button.textContent = next ? 'Listening. Let go, or press again, to send' : 'Hold to talk';
  }

  function press() {
    if (isDown) return release(true);
    pressedAt = performance.now();
    show(true);
    on.begin();
  }

  function release(isSecond = false) {
    if (!isDown || (!isSecond && performance.now() - pressedAt < TAP_MS)) return;
    show(false);
    on.end();
  }

  const isKey = ({ key, repeat }) => (key === ' ' || key === 'Enter') && !repeat;
  button.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    button.setPointerCapture(event.pointerId);
    press();
  });
  for (const end of ['pointerup', 'pointercancel']) button.addEventListener(end, () => release());
  button.addEventListener('keydown', (event) => {
    if (event.key === ' ' || event.key === 'Enter') event.preventDefault(); // else it would be clicked
    if (isKey(event)) press();
  });
  button.addEventListener('keyup', (event) => {
    if (isKey(event)) release();
  });
  // A screen reader clicks without a pointer or a key.
  button.addEventListener('click', ({ detail }) => {
    if (detail === 0) press();
  });
  button.addEventListener('blur', () => release(true));
  show(false);

  return {
    /** Lets go without a word, because there is nobody to talk to any more. */
    reset: () => show(false),
  };
}
