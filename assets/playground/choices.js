/** These are the forms: they offer models and languages, and read what the visitor has chosen. */
import { rememberSettings } from './settings.js';
import { shortSize } from './sizes.js';

/**
 * A model and the language that is spoken, among those that the model knows.
 * @param parts elements by name: model, language, note
 */
export function createModelChoice({ model, language, note }) {
  let models = [];

  function describe() {
    const chosen = models.find(({ id }) => id === model.value);
    if (chosen === undefined) return '';
    if (chosen.is_routing_alias) return 'Picks a model by language, and says why.';
    const state = chosen.loaded
      ? 'Loaded'
      : chosen.installed
        ? 'Installed'
        : `Not on disk: downloaded first${sizeIn(chosen)}`;
    return `${state}${chosen.supports_streaming ? '' : '; its text arrives all at once'}.`;
  }

  function fillLanguages() {
    const chosen = models.find(({ id }) => id === model.value);
    const codes = chosen?.languages ?? models.flatMap(({ languages }) => languages ?? []);
    const before = language.value;
    const options = [...new Set(codes)].map((code) => [nameOf(code), code]);
    options.sort(([a], [b]) => a.localeCompare(b));
    language.replaceChildren(new Option('Detect', ''), ...options.map((pair) => new Option(...pair)));
    language.value = codes.includes(before) ? before : '';
  }

  function show() {
    fillLanguages();
    note.textContent = describe();
  }

  model.addEventListener('input', show);

  return {
    setModels(list) {
      models = list;
      const state = (entry) =>
        entry.loaded ? 'loaded' : entry.installed ? 'installed' : `to be downloaded${sizeIn(entry)}`;
      const label = (entry) => (entry.is_routing_alias ? entry.id : `${entry.id} (${state(entry)})`);
      fillModels(model, list, label);
      show();
    },
    say(text) {
      note.textContent = text;
    },
    /** Whether the weights of a model were not on disk when the models were listed last. */
    isMissing: (id) => models.some((entry) => entry.id === id && !entry.installed),
    read: () => ({ model: model.value || 'auto', language: language.value }),
    /** The chosen model where it translates, else one that does; null without any. */
    translator(chosen) {
      const able = models.filter((entry) => entry.supports_translation);
      return (able.find(({ id }) => id === chosen) ?? able[0])?.id ?? null;
    },
    /** Finds the code of a language that the gateway named (`english`); empty when no model has that language. */
    codeOf(name) {
      const codes = new Set(models.flatMap(({ languages }) => languages ?? []));
      return [...codes].find((code) => nameOf(code, 'en').toLowerCase() === name) ?? '';
    },
  };
}

const sizeIn = ({ size_bytes: bytes }) => (bytes > 0 ? `, ${shortSize(bytes)}` : '');

/** Offers models and keeps the chosen one, where it is still there. */
export function fillModels(select, list, label = ({ id }) => id) {
  const before = select.value;
  select.replaceChildren(...list.map((entry) => new Option(label(entry), entry.id)));
  select.value = list.some(({ id }) => id === before) ? before : (list[0]?.id ?? '');
}

const FIELDS = ['model', 'language', 'word-times', 'diarize', 'translate', 'prompt', 'granularity'];

/** All choices for a transcription, as they were on the last visit. @param onChange () => void */
export function createChoices(form, onChange) {
  const el = (id) => form.querySelector(`#${id}`);
  rememberSettings('voxgate-transcription', FIELDS.map(el));
  /** What is on must be seen. */
  function unfold() {
    if (el('translate').checked || el('prompt').value !== '' || el('granularity').value !== 'sentence')
      el('granularity').closest('details').open = true;
  }
  unfold();
  const choice = createModelChoice({ model: el('model'), language: el('language'), note: el('model-note') });
  form.addEventListener('input', onChange);
  return {
    ...choice,
    setModels(list) {
      choice.setModels(list);
      onChange();
    },
    /** Sets the form to what a take was made with; a model that is gone leaves the one that is chosen. */
    write({ model, language, translate, prompt, diarize, wordTimes, granularity }) {
      const has = (id, value) => [...el(id).options].some((option) => option.value === value);
      const set = (id, value) => {
        if (typeof value === 'boolean') el(id).checked = value;
        else if (el(id).options === undefined || has(id, value)) el(id).value = value;
        el(id).dispatchEvent(new Event('input', { bubbles: true }));
      };
      set('model', model);
      set('language', language); // those of the model
      set('translate', translate);
      set('prompt', prompt);
      set('diarize', diarize);
      set('word-times', wordTimes);
      set('granularity', granularity);
      unfold();
    },
    read: () => ({
      ...choice.read(),
      translate: el('translate').checked,
      prompt: el('prompt').value.trim(),
      diarize: el('diarize').checked,
      wordTimes: el('word-times').checked,
      granularity: el('granularity').value,
    }),
  };
}

function nameOf(code, locale = undefined) {
  try {
    return new Intl.DisplayNames(locale, { type: 'language' }).of(code) ?? code;
  } catch {
    return code;
  }
}
