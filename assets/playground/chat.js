/** The chat tab: messages and answers that grow while they are written. */
import { fillModels } from './choices.js';
import { createFollowing } from './following.js';
import { createJob } from './job.js';

/** What is sent along at most, so that a long talk still fits what a model remembers. */
const MAX_MESSAGES = 40;

/**
 * Shows one message after the other.
 * @param list an `ol` in a `log` that scrolls
 * @param composer what stays in view while the conversation grows above it; none where there is nothing to write
 */
export function createConversation(list, composer = null) {
  let messages = [];
  const box = list.closest('[role="log"]');
  const following = createFollowing(box);
  const grown = () => {
    if (following.grown()) composer?.scrollIntoView({ block: 'nearest' });
  };
  return {
    /** The newest messages, as a request has them. Some models refuse those that do not begin with one of the user. */
    get messages() {
      const newest = messages.slice(-MAX_MESSAGES);
      return newest.slice(newest.findIndex(({ role }) => role === 'user'));
    },
    clear() {
      messages = [];
      following.reset();
      list.replaceChildren();
    },
    /** A screen reader reads an answer once, when it is whole. */
    set isGrowing(value) {
      box.setAttribute('aria-busy', String(value));
    },
    /** @returns the message, which grows by `append(text)`; `remove()` tells whether it was still there to take away */
    add(role, content = '') {
      const message = { role, content };
      const row = document.createElement('li');
      row.className = `message ${role}`;
      const who = document.createElement('b');
      who.className = 'note';
      who.textContent = role === 'user' ? 'You' : 'Model';
      const said = document.createElement('p');
      said.dir = 'auto';
      said.textContent = content;
      row.append(who, said);
      messages.push(message);
      list.append(row);
      grown();
      return {
        append(text) {
          message.content += text;
          said.textContent = message.content;
          grown();
        },
        remove() {
          const wasThere = row.isConnected;
          messages = messages.filter((each) => each !== message);
          row.remove();
          return wasThere;
        },
        get content() {
          return message.content;
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
 * @param onNothing called when there is no answer, unless the conversation was cleared
 * @returns the whole text
 */
export async function answer(client, asked, { signal, served }, say) {
  const { model, conversation, content, before = [], onNothing } = asked;
  const question = conversation.add('user', content);
  const messages = [...before, ...conversation.messages];
  const reply = conversation.add('assistant');
  conversation.isGrowing = true;
  try {
    await served(() => {
      say('Waiting for the answer.');
      return client.chat({ model, messages }, signal, (text) => reply.append(text));
    });
    return reply.content;
  } finally {
    conversation.isGrowing = false;
    if (reply.content === '') {
      reply.remove();
      if (question.remove()) onNothing?.();
    }
  }
}

/** @param parts elements by name: form, model, text, start, stop, again, status, problem, busy, messages */
export function createChat(parts, client) {
  const { form, model, text, again, messages } = parts;
  const job = createJob(parts);
  const conversation = createConversation(messages, form);

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const content = text.value.trim();
    if (content === '' || job.isRunning) return;
    text.value = '';
    again.hidden = false;
    const onNothing = () => {
      text.value ||= content;
    };
    const asked = { model: model.value, conversation, content, onNothing };
    job.run(async (signal, served) => {
      const said = await answer(client, asked, { signal, served }, job.say);
      job.say(said === '' ? 'The model wrote nothing.' : 'Done.');
    });
  });
  text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  again.addEventListener('click', () => {
    job.drop();
    conversation.clear();
    again.hidden = true;
    job.say('Write something to begin.');
    text.focus();
  });

  return { setModels: (list) => fillModels(model, list) };
}
