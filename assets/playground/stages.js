/** How long each stage of a spoken answer took, from the end of speech to the first sound, as a strip. */

/** In the order in which they follow each other; each ends with its mark. */
const STAGES = [
  ['spoken', 'pause'],
  ['heard', 'text'],
  ['written', 'model'],
  ['voiced', 'voice'],
  ['played', 'player'],
];

/** @returns marks of one turn, in ms of `performance.now`: `mark(name)` notes the first of each */
export function createStages() {
  const marks = new Map();
  return {
    mark(name, at = performance.now()) {
      if (!marks.has(name)) marks.set(name, at);
    },
    /** @returns an element; null where it is not known when speech ended */
    strip() {
      const endOfSpeech = marks.get('end');
      if (endOfSpeech === undefined) return null;
      const spans = [];
      let at = endOfSpeech;
      for (const [mark, name] of STAGES) {
        const end = Math.max(at, marks.get(mark) ?? at);
        if (marks.has(mark)) spans.push({ name, ms: Math.round(end - at) });
        at = end;
      }
      return draw(spans, at - endOfSpeech);
    },
  };
}

function draw(spans, wholeMs) {
  const box = document.createElement('div');
  box.className = 'stages note';
  const sum = document.createElement('p');
  sum.textContent = `${(wholeMs / 1000).toFixed(2)} s from the end of speech to the first sound`;
  const list = document.createElement('ol');
  for (const { name, ms } of spans) {
    const stage = document.createElement('li');
    stage.dataset.stage = name;
    stage.style.flexGrow = String(Math.max(1, ms));
    stage.textContent = `${name} ${ms} ms`;
    list.append(stage);
  }
  box.append(sum, list);
  return box;
}
