/** This is the form: it offers models and languages, and reads what the visitor has chosen. */

/** @param onChange () => void */
export function createChoices(form, onChange) {
  const el = (id) => form.querySelector(`#${id}`);
  const model = el('model');
  const language = el('language');
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

  form.addEventListener('input', (event) => {
    if (event.target === model) {
      fillLanguages();
      el('model-note').textContent = describe();
    }
    onChange();
  });

  return {
    setModels(list) {
      models = list;
      const before = model.value;
      const state = ({ loaded, installed }) =>
        loaded ? 'loaded' : installed ? 'installed' : 'to be downloaded';
      const label = (entry) => (entry.is_routing_alias ? entry.id : `${entry.id} (${state(entry)})`);
      model.replaceChildren(...list.map((entry) => new Option(label(entry), entry.id)));
      model.value = list.some(({ id }) => id === before) ? before : (list[0]?.id ?? '');
      fillLanguages();
      el('model-note').textContent = describe();
      onChange();
    },
    say(text) {
      el('model-note').textContent = text;
    },
    read: () => ({
      model: model.value || 'auto',
      language: language.value,
      translate: el('translate').checked,
      prompt: el('prompt').value.trim(),
      diarize: el('diarize').checked,
      wordTimes: el('word-times').checked,
      granularity: el('granularity').value,
    }),
    /** Finds the code of a language that the gateway named (`english`); empty when no model has that language. */
    codeOf(name) {
      const codes = new Set(models.flatMap(({ languages }) => languages ?? []));
      return [...codes].find((code) => nameOf(code, 'en').toLowerCase() === name) ?? '';
    },
  };
}

function nameOf(code, locale = undefined) {
  try {
    return new Intl.DisplayNames(locale, { type: 'language' }).of(code) ?? code;
  } catch {
    return code;
  }
}
