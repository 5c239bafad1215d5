/**
 * Asks for the API key; two requests that are refused at once ask once. The promise resolves to null when the reader
 * gives up.
 */
export function createKeyDialog({ dialog, input, wrong, cancel }) {
  let pending = null;
  cancel.addEventListener('click', () => dialog.close(''));

  const ask = (wasWrong) =>
    new Promise((resolve) => {
      input.value = '';
      wrong.hidden = !wasWrong;
      dialog.returnValue = '';
      dialog.showModal();
      const closed = () => {
        const key = input.value.trim();
        input.value = '';
        resolve(dialog.returnValue === 'use' && key !== '' ? key : null);
      };
      dialog.addEventListener('close', closed, { once: true });
    });

  return (wasWrong) => {
    pending ??= ask(wasWrong).finally(() => {
      pending = null;
    });
    return pending;
  };
}
