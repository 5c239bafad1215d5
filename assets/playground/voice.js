/** The voice tab: the visitor talks with the chat model over `/v1/realtime`, and may interrupt it. */
import { createAnswerSound } from './answer-sound.js';
import { fillModels } from './choices.js';
import { createConversation } from './conversation.js';
import { createJob } from './job.js';
import { listen, toLevel, whyNoMicrophone } from './microphone.js';
import { createMicrophoneChoice } from './microphone-choice.js';
import { whyNoRecording } from './recorder.js';
import { RequestFailed } from './request.js';
import { rememberSettings } from './settings.js';
import { createStages } from './stages.js';
import { createTalkButton } from './talk-button.js';
import { openTalk } from './talk-socket.js';
import { describeTools, runTool } from './talk-tools.js';
import { fillVoices, openVoices } from './voices.js';

const GONE = 'The microphone was disconnected. Start reconnects and continues the conversation.';

/**
 * @param parts elements by name: form, chatModel, voice, voiceNote, mode, instructions, tools, microphoneField,
 *   microphone, start, stop, hold, interrupt, clear, status, problem, busy, level, hearing, box, messages
 */
export function createVoice(parts, client) {
  const { form, chatModel, voice, voiceNote, mode, instructions, tools, hold, level } = parts;
  const job = createJob(parts);
  const conversation = createConversation(parts.messages);
  const choice = createMicrophoneChoice(parts.microphoneField, parts.microphone, () => undefined);
  const talkButton = createTalkButton(hold, { begin: beginTurn, end: endTurn });
  let talk = null;
  let view = null;
  /** While the visitor decides when to be heard. */
  let isHeard = true;

  const isPushToTalk = () => mode.value === 'push';
  const idleWords = () => (isPushToTalk() ? 'Hold the button and talk.' : 'Listening.');

  function hear(bytes) {
    level.value = isHeard ? toLevel(bytes) : 0;
    if (isHeard) talk?.append(bytes);
  }

  function beginTurn() {
    interrupt();
    parts.problem.hidden = true;
    isHeard = true;
    job.say('Listening.');
  }

  function endTurn() {
    if (talk === null) return;
    isHeard = false;
    view.spoken(performance.now());
    talk.commit();
  }

  function interrupt() {
    if (talk === null) return;
    talk.cancel();
    silence();
    job.say(idleWords());
  }

  function silence() {
    const heard = view.silence();
    if (heard !== null) talk.truncate(heard);
  }

  /** Talks until the visitor stops or the connection ends. */
  async function converse(signal, served) {
    if (voice.options.length === 0) await fillVoices(voice, voiceNote, client, { signal, served });
    await client.models(); // asks for the key where one is missing
    const closed = Promise.withResolvers();
    const stopMicrophone = await listen(hear, () => talk?.close(GONE), {
      deviceId: choice.read(),
      cancelsEcho: true,
    }).catch((error) => {
      throw new RequestFailed({ message: whyNoMicrophone(error) });
    });
    choice.refresh();
    const stop = () => talk.close();
    try {
      signal.throwIfAborted();
      job.say('Connecting.');
      view = createTalkView(parts, conversation, { say: job.say, idleWords });
      isHeard = !isPushToTalk();
      talk = openTalk(settings(), runTool, {
        ...view.on,
        ready() {
          showOpen(true);
          job.say(idleWords());
        },
        speaking() {
          silence(); // the gateway ends the answer by itself
          view.on.speaking();
        },
        closed: closed.resolve,
      });
      signal.addEventListener('abort', stop);
      const why = await closed.promise;
      if (why !== null) throw new RequestFailed({ message: why });
      job.say('Stopped. Start continues this conversation.');
    } finally {
      signal.removeEventListener('abort', stop);
      showOpen(false);
      view?.end();
      talk = null;
      await stopMicrophone();
    }
  }

  const settings = () => ({
    model: chatModel.value,
    voice: voice.value,
    instructions: instructions.value,
    tools: tools.checked ? describeTools() : [],
    isPushToTalk: isPushToTalk(),
    before: conversation.messages,
  });

  function showOpen(isOpen) {
    hold.hidden = !isOpen || !isPushToTalk();
    level.hidden = !isOpen;
    parts.interrupt.hidden = !isOpen;
    parts.clear.hidden = isOpen || conversation.isEmpty;
    for (const field of form.querySelectorAll('select, textarea, input')) field.disabled = isOpen;
    talkButton.reset();
    if (isOpen && isPushToTalk()) hold.focus();
  }

  rememberSettings('voxgate-voice', [mode, instructions, tools]);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (!job.isRunning) job.run(converse);
  });
  parts.interrupt.addEventListener('click', interrupt);
  parts.clear.addEventListener('click', () => {
    conversation.clear();
    parts.clear.hidden = true;
    parts.start.focus();
    job.say('Cleared.');
  });
  const why = whyNoRecording();
  if (why !== null) {
    parts.start.disabled = true;
    job.say(why);
  }

  return {
    open: () => openVoices(job, { voice, voiceNote }, client, 'Start, and say something.'),
    setModels: (chat) => fillModels(chatModel, chat),
    code: settings,
  };
}

/** Shows one session: what was said, the answers with their sound, and how long each stage took. */
function createTalkView({ hearing, messages, problem }, conversation, { say, idleWords }) {
  let stages = createStages();
  let reply = null;
  let sound = null;

  const isSounding = () => sound !== null;

  function addSound(itemId) {
    const row = reply?.row;
    const mine = stages;
    sound = createAnswerSound(itemId, (at) => {
      mine.mark('played', at);
      const strip = mine.strip();
      if (strip !== null) row?.append(strip);
    });
    const own = sound;
    own.over.then((wasHeard) => {
      if (!wasHeard) fail('This browser blocked the sound.');
      if (sound !== own) return;
      sound = null;
      say(idleWords());
    });
  }

  function fail(message) {
    problem.textContent = message;
    problem.hidden = false;
  }

  function endReply(note) {
    conversation.isGrowing = false;
    const ended = reply;
    reply = null;
    return ended?.end(note);
  }

  function spoken(endOfSpeech) {
    stages = createStages();
    stages.mark('end', endOfSpeech);
    if (performance.now() > endOfSpeech) stages.mark('spoken'); // no pause is waited for where a button ends the turn
    say('Transcribing.');
  }

  const on = {
    speaking() {
      problem.hidden = true;
      say('You are speaking.');
    },
    spoken,
    hearing(delta) {
      hearing.textContent += delta;
    },
    heard(text) {
      hearing.textContent = '';
      stages.mark('heard');
      if (text !== '') conversation.add('user', text);
      else if (!isSounding()) say(idleWords());
    },
    answering() {
      say('Thinking.');
    },
    text(delta) {
      stages.mark('written');
      if (reply === null) {
        reply = conversation.add('assistant');
        conversation.isGrowing = true;
      }
      reply.append(delta);
    },
    audio(bytes, itemId) {
      stages.mark('voiced');
      if (sound?.itemId !== itemId) {
        sound?.stop();
        addSound(itemId);
        say('Answering.');
      }
      sound.add(bytes);
    },
    audioDone: () => sound?.end(),
    tool(name, args, output) {
      const row = document.createElement('li');
      row.className = 'note tool-call';
      row.textContent = `${name}(${args}) gave ${output}`;
      messages.append(row);
    },
    answered({ status, reason, error }, goesOn) {
      endReply(status === 'completed' ? '' : status === 'cancelled' ? 'interrupted' : (reason ?? ''));
      if (error) fail(error.message);
      if (!isSounding() && !goesOn)
        say(status === 'failed' ? 'That did not work. Say it again.' : idleWords());
    },
    problem: fail,
  };

  return {
    on,
    spoken,
    /** Ends the sound. @returns {itemId, ms} what was heard of it; null where nothing sounds */
    silence() {
      if (sound === null) return null;
      const { itemId } = sound;
      const heard = { itemId, ms: sound.stop() };
      sound = null;
      return heard;
    },
    end() {
      hearing.textContent = '';
      sound?.stop();
      sound = null;
      endReply('');
    },
  };
}
