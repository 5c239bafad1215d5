/** The chat tab: a conversation whose last question can be asked again, and how the model is asked. */
import { fillModels } from './choices.js';
import { answer, createConversation } from './conversation.js';
import { createJob } from './job.js';
import { loadMarkdown } from './markdown.js';
import { rememberSettings } from './settings.js';

/** What a request has besides its messages. An empty field leaves the choice to the model. */
function createSettings({ system, temperature, maxTokens }) {
  rememberSettings('voxgate-chat-settings', [system, temperature, maxTokens]);
  const set = (field) => field.value.trim() !== '' && field.checkValidity();
  return {
    before: () => (system.value.trim() === '' ? [] : [{ role: 'system', content: system.value.trim() }]),
    read: () => ({
      ...(set(temperature) && { temperature: Number(temperature.value) }),
      ...(set(maxTokens) && { max_tokens: Number(maxTokens.value) }),
    }),
  };
}

/**
 * @param parts elements by name: form, model, text, system, temperature, maxTokens, start, stop, again, editing, leave,
 *   status, problem, busy, messages
 */
export function createChat(parts, client) {
  const { form, model, text, again, messages } = parts;
  const job = createJob(parts);
  const conversation = createConversation(messages, form, { keep: 'voxgate-chat', canRetake: true });
  const settings = createSettings(parts);
  /** The question that is being edited, with its answer, and what was written before. */
  const edit = createEdit(parts);

  /** @param taken what the question replaces; null for one more */
  function ask(content, taken, onNothing) {
    again.hidden = false;
    const asked = {
      model: model.value,
      conversation,
      content,
      before: settings.before(),
      settings: settings.read(),
      onNothing() {
        taken?.putBack();
        again.hidden = conversation.isEmpty;
        onNothing();
      },
    };
    job.run(async (signal, served) => {
      const said = await answer(client, asked, { signal, served }, job.say);
      job.say(said === '' ? 'The model wrote nothing.' : 'Done.');
    });
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const content = text.value.trim();
    if (content === '') return;
    if (job.isRunning)
      return job.say('The answer is still coming. Send this when it is done, or stop the answer.');
    if (edit.isOn) {
      edit.leave();
      return ask(content, conversation.takeBack(), () => edit.begin(content));
    }
    text.value = '';
    ask(content, null, () => {
      // Keeps what was typed in the meantime, too.
      text.value = [content, text.value].filter((part) => part !== '').join('\n\n');
    });
  });
  text.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && edit.isOn) return edit.leave();
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  messages.addEventListener('click', ({ target }) => {
    const action = target.closest('.retake')?.dataset.do;
    if (action === undefined || job.isRunning) return;
    const taken = conversation.takeBack();
    if (action === 'edit') {
      taken.putBack();
      return edit.begin(taken.content);
    }
    edit.leave();
    ask(taken.content, taken, () => {});
    parts.stop.focus(); // the button went with its answer
  });
  again.addEventListener('click', () => {
    job.drop();
    edit.leave();
    conversation.clear();
    again.hidden = true;
    job.say('Write something to begin.');
    text.focus();
  });
  again.hidden = conversation.isEmpty;
  text.value ||= conversation.unanswered;
  if (!conversation.isEmpty) job.say('Your conversation is still here.');

  return {
    /** Preloads the Markdown renderer, so that the first answer need not wait for it. */
    open: () => void loadMarkdown().catch(() => {}),
    setModels: (list) => fillModels(model, list),
    code: () => ({ model: model.value, content: text.value.trim() || 'Hello!' }),
  };
}

/** The last question comes into the box to be changed; what was written there waits. */
function createEdit({ text, editing, leave }) {
  let isOn = false;
  let draft = '';

  function giveUp() {
    if (!isOn) return;
    text.value = draft;
    isOn = false;
    editing.hidden = true;
  }

  leave.addEventListener('click', () => {
    giveUp();
    text.focus();
  });
  return {
    get isOn() {
      return isOn;
    },
    begin(question) {
      if (!isOn) draft = text.value;
      isOn = true;
      text.value = question;
      editing.hidden = false;
      text.focus();
    },
    /** Gives up the change. */
    leave: giveUp,
  };
}
