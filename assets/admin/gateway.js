/** Knows whether the gateway answers, and tells the reader when it does not, refuses, or needs a key first. */
import { createKeyDialog } from '../key-dialog.js';
import { showInTab } from './tab.js';

const el = (id) => document.getElementById(id);

/** From this file, because the page of a capture is deeper than the dashboard. */
const DASHBOARD = new URL('../../admin', import.meta.url);
const SESSION = new URL('../../admin/session', import.meta.url);

/** @param refresh draws everything again */
export function createGateway(refresh) {
  const ask = createKeyDialog({
    dialog: el('key-dialog'),
    input: el('key'),
    wrong: el('key-wrong'),
    cancel: el('key-cancel'),
  });
  let awaySince = null;
  let locked = false;

  el('failed-close').addEventListener('click', () => {
    el('failed').hidden = true;
  });
  el('unlock').addEventListener('click', () => unlock());
  el('sign-out').addEventListener('click', () => signOut());

  /** Asks until a key is accepted or the reader gives up. */
  async function unlock() {
    locked = true;
    el('sign-out').hidden = true;
    el('locked').hidden = false;
    for (let wrong = false; ; wrong = true) {
      const key = await ask(wrong);
      if (key === null) return;
      const status = await signIn(key);
      if (status === 401) continue;
      if (status >= 400) return fail(`The key could not be checked: the gateway answered ${status}`);
      break;
    }
    locked = false;
    el('locked').hidden = true;
    el('sign-out').hidden = false;
    refresh();
  }

  async function signIn(key) {
    try {
      const response = await fetch(SESSION, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ key }),
      });
      return response.status;
    } catch {
      return 503;
    }
  }

  async function signOut() {
    try {
      const { ok, status } = await fetch(SESSION, { method: 'DELETE' });
      if (!ok) return fail(`You are still signed in: the gateway answered ${status}`);
    } catch {
      return fail('You are still signed in: cannot reach the gateway');
    }
    // Nothing of what was shown stays on the screen.
    location.assign(DASHBOARD);
  }

  function fail(message) {
    el('failed-text').textContent = message;
    el('failed').hidden = false;
  }

  return {
    /** True while a key is missing; nothing is asked for until one is accepted. */
    get isLocked() {
      return locked;
    },

    unreachable() {
      if (awaySince !== null) return;
      awaySince = new Date();
      const since = awaySince.toLocaleTimeString([], { hourCycle: 'h23' });
      el('unreachable').textContent =
        `The gateway has been unreachable since ${since}. This page shows the last known state and keeps trying.`;
      el('unreachable').hidden = false;
      showInTab('bad', 'Not reachable');
    },

    reachable() {
      if (awaySince === null) return;
      awaySince = null;
      el('unreachable').hidden = true;
      showInTab('ok');
      refresh();
    },

    /** @param wanted true where the reader asked; the next poll brings what a refused poll missed */
    refused(status, body, wanted) {
      if (status === 401) {
        if (!locked) void unlock();
      } else if (wanted || status !== 503) fail(`${messageOf(body)} (status ${status})`);
    },

    fail,
  };
}

function messageOf(body) {
  try {
    const { message, request_id: id } = JSON.parse(body).error;
    return id === undefined ? message : `${message}; request id ${id}`;
  } catch {
    return 'The gateway refused the request';
  }
}
