/** Tabs by the ARIA pattern: one Tab stop, arrows, Home and End among them. The address names the chosen one. */

/** What a visitor lacks where a capability of `/v1/models` is absent. */
const MISSING = {
  asr: 'Transcription needs a model: run npx voxgate models pull multilingual-base where the gateway runs.',
  tts: 'Speech needs a speech server: start one, and set SVC_TTS_UPSTREAM_URL to its address.',
  llm: 'Chat needs a chat daemon, such as Ollama: start one, and set SVC_LLM_BACKEND_URL to its address.',
};

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

/**
 * All tabs stand in the page from the start, so that nothing moves when the models are known. One that cannot serve
 * says in the place of its panel what it lacks.
 *
 * @param list holds the tabs; the needs of each, capabilities with a space between them, are in `data-needs`
 * @param missing the place for what the chosen tab lacks
 * @param onSelect (name) => void
 * @param onServe (name) => void, when the chosen tab is known to have all it needs
 */
export function createTabs(list, missing, { onSelect, onServe }) {
  const tabs = [...list.querySelectorAll('[role="tab"]')];
  const panelOf = (tab) => document.getElementById(tab.getAttribute('aria-controls'));
  const nameOf = (tab) => tab.id.slice('tab-'.length);
  const find = (name) => tabs.find((tab) => nameOf(tab) === name);
  let chosen = find(location.hash.slice(1)) ?? tabs[0];
  /** Null until the models are known. */
  let served = null;

  const lacksOf = (tab) =>
    served === null ? [] : tab.dataset.needs.split(' ').filter((need) => !served.has(need));

  function show(tab) {
    chosen = tab;
    const lacks = lacksOf(tab);
    for (const each of tabs) {
      each.setAttribute('aria-selected', String(each === tab));
      each.tabIndex = each === tab ? 0 : -1;
      panelOf(each).hidden = each !== tab || lacks.length > 0;
    }
    missing.textContent = lacks.map((need) => MISSING[need]).join('\n');
    missing.hidden = lacks.length === 0;
    onSelect(nameOf(tab));
    if (served !== null && lacks.length === 0) onServe(nameOf(tab));
  }

  function select(tab) {
    history.replaceState(null, '', `#${nameOf(tab)}`);
    if (tab !== chosen) show(tab);
  }

  list.addEventListener('click', ({ target }) => {
    const tab = target.closest('[role="tab"]');
    if (tab !== null) select(tab);
  });
  list.addEventListener('keydown', (event) => {
    const at = tabs.indexOf(chosen);
    const next =
      event.key in STEPS
        ? tabs.at((at + STEPS[event.key]) % tabs.length)
        : { Home: tabs[0], End: tabs.at(-1) }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    select(next);
    next.focus();
  });
  addEventListener('hashchange', () => {
    const tab = find(location.hash.slice(1));
    if (tab !== undefined) select(tab);
  });

  show(chosen);

  return {
    /** Takes the capabilities that can serve. A tab that has served stays as it is, because its visitor is in it. */
    offer(capabilities) {
      const isFirst = served === null;
      const hasServed = !isFirst && lacksOf(chosen).length === 0;
      served = capabilities;
      if (hasServed) return;
      const isNamed = find(location.hash.slice(1)) !== undefined;
      const able = tabs.find((tab) => lacksOf(tab).length === 0);
      show(isFirst && !isNamed && lacksOf(chosen).length > 0 ? (able ?? chosen) : chosen);
    },
    select(name) {
      select(find(name));
    },
  };
}
