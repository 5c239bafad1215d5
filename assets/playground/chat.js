/** The chat tab: messages and answers that grow while they are written. */
import { fillModels } from './choices.js';
import { createJob } from './job.js';

/** What is sent along at most, so that a long talk still fits what a model remembers. */
const MAX_MESSAGES = 40;

/** Shows one message after the other. @param list an `ol` */
export function createConversation(list) {
  let messages = [];
  return {
    /** The newest messages, as a request has them. */
    get messages() {
      return messages.slice(-MAX_MESSAGES);
    },
    clear() {
      messages = [];
      list.replaceChildren();
    },
    /** A screen reader reads an answer once, when it is whole. */
    set isGrowing(value) {
      list.closest('[role="log"]').setAttribute('aria-busy', String(value));
    },
    /** @returns the message, which grows by `append(text)`, and is taken away again by `remove()` */
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
      row.scrollIntoView({ block: 'nearest' });
      return {
        append(text) {
          message.content += text;
          said.textContent = message.content;
          row.scrollIntoView({ block: 'nearest' });
        },
        remove() {
          messages = messages.filter((each) => each !== message);
          row.remove();
        },
        get content() {
          return message.content;
        },
      };
    },
  };
}

/**
 * Has the conversation answered, and shows the answer while it comes.
 * @param before messages that the model reads first, and that are not shown
 * @returns the whole text
 */
export async function answer(client, { model, conversation, before = [] }, { signal, served }, say) {
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
    if (reply.content === '') reply.remove();
  }
}

/** @param parts elements by name: form, model, text, start, stop, again, status, problem, busy, messages */
export function createChat(parts, client) {
  const { form, model, text, again, messages } = parts;
  const job = createJob(parts);
  const conversation = createConversation(messages);

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const content = text.value.trim();
    if (content === '' || job.isRunning) return;
    conversation.add('user', content);
    text.value = '';
    again.hidden = false;
    job.run(async (signal, served) => {
      await answer(client, { model: model.value, conversation }, { signal, served }, job.say);
      job.say('Done.');
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
