/** A conversation with a model: messages, and answers that grow while they are written. */
import { createFollowing } from './following.js';
import { createMessage } from './message.js';
import { createPace } from './pace.js';
import { inTab } from './storage.js';
import { copy } from './take.js';

/** The most messages that are sent along, so that a long chat still fits a model's context. */
const MAX_MESSAGES = 40;
/** What a tab of the browser keeps at most, which is 5 MB for all that a page keeps there. */
const MAX_KEPT_CHARS = 1_000_000;

/** @param keep the name under which the tab of the browser keeps the messages; null for none */
function createKeeping(keep) {
  return {
    read() {
      try {
        const kept = JSON.parse(inTab.get(keep) ?? '[]');
        return Array.isArray(kept) ? kept.filter(({ content }) => typeof content === 'string') : [];
      } catch {
        return [];
      }
    },
    write(messages) {
      if (keep === null) return;
      const kept = [...messages];
      while (kept.length > 0 && JSON.stringify(kept).length > MAX_KEPT_CHARS) kept.splice(0, 2);
      inTab.set(keep, JSON.stringify(kept));
    },
  };
}

/**
 * Shows one message after the other.
 * @param list an `ol` in a `log` that scrolls
 * @param composer what stays in view while the conversation grows above it; none where there is nothing to write
 * @param options `keep` is the name under which the messages outlive a reload; `canRetake` offers to ask again
 */
export function createConversation(list, composer = null, { keep = null, canRetake = false } = {}) {
  let messages = [];
  const box = list.closest('[role="log"]');
  const following = createFollowing(box);
  const keeping = createKeeping(keep);
  const grown = () => {
    if (following.grown()) composer?.scrollIntoView({ block: 'nearest' });
  };
  let isLeft = false;
  const save = () => {
    if (!isLeft) keeping.write(messages);
  };
  // A page that is left loses its requests, and what they had begun would be taken away.
  addEventListener('pagehide', () => {
    save();
    isLeft = true;
  });
  addEventListener('pageshow', () => {
    isLeft = false;
  });

  list.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-do^="copy"]');
    if (button === null) return;
    const code = button.closest('.code-block')?.querySelector('pre');
    const { content, box: said } = messages.find(({ row }) => row.contains(button));
    copy(code?.textContent ?? content, button, code ?? said);
  });

  function add(role, content = '', note = '') {
    const message = createMessage({ role, content, note }, canRetake, grown);
    messages.push(message);
    list.append(message.row);
    grown();
    return message;
  }

  const kept = keep === null ? [] : keeping.read();
  // A reload while the daemon was asked leaves a question without an answer.
  const unanswered = kept.at(-1)?.content === '' ? kept.splice(-2)[0].content : '';
  for (const { role, content, note } of kept) add(role, content, note);

  return {
    /** The newest messages, as a request has them. Some models refuse those that do not begin with one of the user. */
    get messages() {
      const newest = messages.slice(-MAX_MESSAGES).map(({ role, content }) => ({ role, content }));
      return newest.slice(newest.findIndex(({ role }) => role === 'user'));
    },
    get isEmpty() {
      return messages.length === 0;
    },
    unanswered,
    clear() {
      messages = [];
      following.reset();
      list.replaceChildren();
      save();
    },
    save,
    /** A screen reader reads an answer once, when it is whole. */
    set isGrowing(value) {
      box.setAttribute('aria-busy', String(value));
      grown(); // the buttons below an answer come when it is whole
    },
    /** @returns the message, which grows by `append(text)` */
    add,
    /** @returns whether it was still there to take away */
    remove(message) {
      const wasThere = message.row.isConnected;
      messages = messages.filter((each) => each !== message);
      message.row.remove();
      save();
      return wasThere;
    },
    /** Takes the last question and its answer away. @returns the question, and how to put both back */
    takeBack() {
      const taken = messages.splice(-2);
      for (const { row } of taken) row.remove();
      return {
        content: taken[0].content,
        putBack() {
          messages.push(...taken);
          list.append(...taken.map(({ row }) => row));
          save();
          grown();
        },
      };
    },
  };
}

/**
 * Asks the model, and shows the answer while it comes. What got no answer does not stay in the conversation, because some
 * models refuse two messages of the user in a row.
 * @param content what the user says
 * @param before messages that the model reads first, and that are not shown
 * @param settings what else the request has, such as `temperature`
 * @param onNothing called when there is no answer, unless the conversation was cleared
 * @returns the whole text
 */
export async function answer(client, asked, { signal, served }, say) {
  const { model, conversation, content, before = [], settings = {}, onNothing } = asked;
  const question = conversation.add('user', content);
  const messages = [...before, ...conversation.messages];
  const reply = conversation.add('assistant');
  let pace = null;
  conversation.isGrowing = true;
  try {
    await served(() => {
      say('Waiting for the answer.');
      pace = createPace();
      const on = {
        thought(text) {
          pace.piece();
          reply.think(text);
        },
        usage: pace.usage,
      };
      const append = (text) => {
        pace.piece();
        reply.append(text);
      };
      return client.chat({ model, messages, ...settings }, signal, append, on);
    });
    return reply.content;
  } finally {
    if (!reply.isEmpty) await reply.end(pace.describe());
    conversation.isGrowing = false;
    conversation.save();
    if (reply.isEmpty) {
      conversation.remove(reply);
      if (conversation.remove(question)) onNothing?.();
    }
  }
}
