/** These are the forms: they offer models and languages, and read what the visitor has chosen. */

/**
 * A model and the language that is spoken, among those that the model knows.
 * @param parts elements by name: model, language, note
 */
export function createModelChoice({ model, language, note }) {
  let models = [];

  function describe() {
    const chosen = models.find(({ id }) => id === model.value);
    if (chosen === undefined) return '';
    if (chosen.is_routing_alias) return 'Chooses by language, and says why.';
    const state = chosen.loaded ? 'Loaded' : chosen.installed ? 'Installed' : 'Not on disk: downloaded first';
    return `${state}${chosen.supports_streaming ? '' : '; gives its text all at once'}.`;
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
      const state = ({ loaded, installed }) =>
        loaded ? 'loaded' : installed ? 'installed' : 'to be downloaded';
      const label = (entry) => (entry.is_routing_alias ? entry.id : `${entry.id} (${state(entry)})`);
      fillModels(model, list, label);
      show();
    },
    say(text) {
      note.textContent = text;
    },
    read: () => ({ model: model.value || 'auto', language: language.value }),
    /** Finds the code of a language that the gateway named (`english`); empty when no model has that language. */
    codeOf(name) {
      const codes = new Set(models.flatMap(({ languages }) => languages ?? []));
      return [...codes].find((code) => nameOf(code, 'en').toLowerCase() === name) ?? '';
    },
  };
}

/** Offers models and keeps the chosen one, where it is still there. */
export function fillModels(select, list, label = ({ id }) => id) {
  const before = select.value;
  select.replaceChildren(...list.map((entry) => new Option(label(entry), entry.id)));
  select.value = list.some(({ id }) => id === before) ? before : (list[0]?.id ?? '');
}

/** All choices for a transcription. @param onChange () => void */
export function createChoices(form, onChange) {
  const el = (id) => form.querySelector(`#${id}`);
  const choice = createModelChoice({ model: el('model'), language: el('language'), note: el('model-note') });
  form.addEventListener('input', onChange);
  return {
    ...choice,
    setModels(list) {
      choice.setModels(list);
      onChange();
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
