/**
 * Keeps finished transcriptions ("takes") in this browser, in IndexedDB: the last 20, up to 200 MB in all. The oldest
 * go first.
 *
 * A take has these properties; all but the first two may be changed later.
 *
 *   id        given by `add`
 *   at        when it was finished, in ms since 1970
 *   name      of the file
 *   settings  that it was made with, as the form gives them
 *   answer    the last event of the gateway, without its type: text, segments, words, speakers, …
 *   language  the code of the language
 *   tookSec   how long it took
 *   names     of the speakers, by label, as the visitor gave them
 *   translation  `{start, end, text}[]`; absent where none was made
 *
 * Whoever changes the text of a take saves it so: `takes.update(id, { answer })`. Updates may come as fast as somebody
 * types. Every function rejects with an Error whose message is a sentence for the visitor.
 */

import { inTab } from './storage.js';

const MOST_TAKES = 20;
const MOST_BYTES = 200_000_000;
/** A longer sound is not kept; its text is. */
export const MOST_SOUND_BYTES = 50_000_000;

const STORES = ['takes', 'sounds'];
/** The changes that are on their way into the database, where a reload would end them. */
const UNSAVED = 'voxgate-unsaved';

export function createTakes() {
  let database = null;
  /** The changes that wait for their turn, by id. */
  const changed = new Map();
  /** Those and the ones that are being written, by id. */
  const unsaved = new Map();

  const noteUnsaved = () => inTab.set(UNSAVED, unsaved.size === 0 ? null : JSON.stringify([...unsaved]));

  /** @param work (takes, sounds: IDBObjectStore) => Promise, which waits for nothing but these stores */
  async function transact(mode, work) {
    try {
      database ??= open();
      const transaction = (await database).transaction(STORES, mode);
      const ended = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = () => reject(transaction.error);
      });
      const worked = work(...STORES.map((name) => transaction.objectStore(name)));
      // What fails before its request is made would leave the rest of the work to be done.
      worked.catch(() => transaction.abort()).catch(() => undefined);
      const [result] = await Promise.all([worked, ended]);
      return result;
    } catch (error) {
      if (error.name === 'InvalidStateError') database = null; // the browser has closed it, and may open it again
      throw inWords(error);
    }
  }

  /** All takes, the newest first, without their sounds. */
  const list = async () => (await transact('readonly', (takes) => done(takes.getAll()))).reverse();

  const remove = (...ids) =>
    transact('readwrite', async (takes, sounds) => {
      for (const id of ids) for (const store of [takes, sounds]) store.delete(id);
    });

  const put = (take, sound) =>
    transact('readwrite', async (takes, sounds) => {
      const id = await done(takes.add(take));
      if (sound !== null) await done(sounds.add(sound, id));
      return id;
    });

  /** Removes what is over the limits. */
  async function trim() {
    let bytes = 0;
    const over = (await list()).filter((take, i) => {
      bytes += take.bytes;
      return i >= MOST_TAKES || (i > 0 && bytes > MOST_BYTES);
    });
    if (over.length > 0) await remove(...over.map(({ id }) => id));
  }

  /** Changes a take, unless it is forgotten. */
  async function update(id, changes) {
    unsaved.set(id, { ...unsaved.get(id), ...changes });
    noteUnsaved();
    const waiting = changed.has(id);
    changed.set(id, { ...changed.get(id), ...changes });
    if (waiting) return;
    try {
      await write(id);
    } finally {
      if (!changed.has(id)) unsaved.delete(id);
      noteUnsaved();
    }
  }

  async function write(id) {
    let all = null;
    await transact('readwrite', async (takes) => {
      const take = await done(takes.get(id));
      all = changed.get(id);
      changed.delete(id);
      if (take !== undefined) await done(takes.put({ ...take, ...all, id }));
    }).catch((error) => {
      if (all === null) changed.delete(id);
      throw error;
    });
  }

  return {
    list,
    remove: (id) => remove(id),
    clear: () =>
      transact('readwrite', async (takes, sounds) => {
        for (const store of [takes, sounds]) store.clear();
      }),

    /**
     * Where the browser has no room, older takes go, and at last the sound of this one.
     * @param take without its id and time; @param sound a File
     * @returns {Promise<number>} the id
     */
    async add(take, sound) {
      let kept = sound.size > MOST_SOUND_BYTES ? null : sound;
      for (;;) {
        const bytes = JSON.stringify(take.answer).length + (kept?.size ?? 0);
        try {
          const id = await put({ ...take, at: Date.now(), bytes }, kept);
          await trim();
          return id;
        } catch (error) {
          if (!(error instanceof NoRoom)) throw error;
          const oldest = (await list()).at(-1);
          if (oldest !== undefined) await remove(oldest.id);
          else if (kept !== null) kept = null;
          else throw error;
        }
      }
    },

    /** The take with `sound`, a File, or null where the sound is not kept; null for a take that is forgotten. */
    get: (id) =>
      transact('readonly', async (takes, sounds) => {
        const [take, sound] = await Promise.all([done(takes.get(id)), done(sounds.get(id))]);
        if (take === undefined) return null;
        return { ...take, sound: sound ? new File([sound], take.name, { type: sound.type }) : null };
      }),

    update,

    /** Saves what a reload of the page has left unsaved. */
    async recover() {
      const left = JSON.parse(inTab.get(UNSAVED) ?? '[]');
      await Promise.all(left.map(([id, changes]) => update(id, changes)));
    },
  };
}

class NoRoom extends Error {}

function inWords(error) {
  if (error instanceof NoRoom) return error;
  if (error?.name === 'QuotaExceededError') return new NoRoom('This browser has no room to keep it.');
  return new Error(`This browser refuses to keep anything here (${error?.message ?? 'no reason given'}).`);
}

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

async function open() {
  const request = indexedDB.open('voxgate', 1);
  request.onupgradeneeded = () => {
    request.result.createObjectStore('takes', { keyPath: 'id', autoIncrement: true });
    request.result.createObjectStore('sounds');
  };
  const database = await done(request);
  database.onversionchange = () => database.close(); // else a newer page in another tab would wait for this one
  return database;
}
