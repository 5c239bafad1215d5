/** Tabs by the ARIA pattern: one Tab stop, arrows, Home and End among those that are shown. The address names one. */

/** What a visitor lacks where a capability of `/v1/models` is absent. */
const MISSING = {
  asr: 'Transcription needs a model: npx voxgate models pull multilingual-base fetches one.',
  tts: 'Speech needs a speech server at SVC_TTS_UPSTREAM_URL.',
  llm: 'Chat needs a chat daemon at SVC_LLM_BACKEND_URL.',
};

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

/**
 * @param list holds the tabs; the needs of each, capabilities with a space between them, are in `data-needs`
 * @param missing takes a line for each capability that is absent
 * @param onSelect (name) => void
 */
export function createTabs(list, missing, onSelect) {
  const tabs = [...list.querySelectorAll('[role="tab"]')];
  const panelOf = (tab) => document.getElementById(tab.getAttribute('aria-controls'));
  const nameOf = (tab) => tab.id.slice('tab-'.length);
  const shown = () => tabs.filter((tab) => !tab.hidden);
  const find = (name) => shown().find((tab) => nameOf(tab) === name);
  let chosen = tabs[0];
  /** The address may name a tab that is shown only when the models are known. */
  let wanted = location.hash.slice(1);

  function show(tab) {
    chosen = tab;
    for (const each of tabs) {
      each.setAttribute('aria-selected', String(each === tab));
      each.tabIndex = each === tab ? 0 : -1;
      panelOf(each).hidden = each !== tab;
    }
    onSelect(nameOf(tab));
  }

  function select(tab) {
    wanted = '';
    history.replaceState(null, '', `#${nameOf(tab)}`);
    if (tab !== chosen) show(tab);
  }

  list.addEventListener('click', ({ target }) => {
    const tab = target.closest('[role="tab"]');
    if (tab !== null) select(tab);
  });
  list.addEventListener('keydown', (event) => {
    const among = shown();
    const at = among.indexOf(chosen);
    const next =
      event.key in STEPS
        ? among.at((at + STEPS[event.key]) % among.length)
        : { Home: among[0], End: among.at(-1) }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    select(next);
    next.focus();
  });
  addEventListener('hashchange', () => {
    const tab = find(location.hash.slice(1));
    if (tab !== undefined) select(tab);
  });

  show(find(wanted) ?? chosen);

  return {
    /** Shows the tabs whose capabilities can serve. The chosen one stays, because its visitor is in it. */
    offer(capabilities) {
      const isFirst = missing.dataset.known === undefined;
      missing.dataset.known = '';
      for (const tab of tabs) {
        const serves = tab.dataset.needs.split(' ').every((need) => capabilities.has(need));
        tab.hidden = !serves && (isFirst || tab !== chosen);
      }
      const lines = Object.entries(MISSING).filter(([capability]) => !capabilities.has(capability));
      missing.textContent = lines.map(([, line]) => line).join(' ');
      missing.hidden = lines.length === 0;
      const next = find(wanted) ?? (chosen.hidden ? shown()[0] : undefined);
      if (next !== undefined && next !== chosen) show(next);
      else panelOf(chosen).hidden = chosen.hidden;
    },
    select(name) {
      const tab = find(name);
      if (tab !== undefined) select(tab);
    },
  };
}
