/**
 * Cuts words into subtitles and writes them as SubRip and WebVTT, by the rules of the gateway's own answers with
 * `segment_granularity=subtitle` (src/transcription/text/subtitles.ts, src/wire/cues.ts): at most 70 characters in two
 * lines of 42, and 1 to 7 s. A test compares the two. Loaded when the first subtitles are made.
 */
import { endsClause, endsSentence, isLongPause } from './sentences.js';
import { estimateWords, placeWords } from './words.js';

const MAX_CHARACTERS = 70;
const LINE_WIDTH = 42;
const MAX_LINES = 2;
const MIN_SEC = 1;
const MAX_SEC = 7;
const PAUSE_SEC = 0.3;
const READING_PER_SEC = 17;
const EPSILON = 1e-9;

/** What a cut costs at each kind of place. The cuts with the lowest sum over all words win. */
const COST = { subtitle: 10, clause: 2, pause: 4, conjunction: 6, anywhere: 9, acrossSentences: 40 };

const CONJUNCTIONS = new Set(
  `and but or because that which who while when if than und oder aber dass weil wenn et mais ou que qui parce car y o
   pero porque e ma che perché oppure mas en maar of omdat dat och men eller som og at fordi ja mutta tai että koska
   i a ale lub że bo ani nebo protože alebo pretože ili ali jer in toda ker és de vagy hogy și dar sau că и но а или
   что та але або що και αλλά ή ότι`.split(/\s+/),
);

/**
 * @param words of the whole answer, where the gateway measured them
 * @param durationSec the length of the audio, after which no cue stays on
 * @returns {{start: number, end: number, text: string, lines: string[], speaker?: string}[]}
 */
export function toCues(segments, words, durationSec) {
  const placed = words === undefined ? segments.map(estimateWords) : placeWords(segments, words);
  const runs = runsBySpeaker(
    segments.flatMap(({ speaker }, i) => placed[i].map((word) => ({ ...word, speaker }))),
  );
  const cues = runs.flatMap((run, i) => {
    const next = runs[i + 1]?.[0].start ?? durationSec;
    const until = Math.max(next, run.at(-1).end);
    const { speaker } = run[0];
    return toSubtitles(run, until, prefixOf(speaker)).map((cue) => ({ ...cue, speaker }));
  });
  return cues.sort((a, b) => a.start - b.start);
}

function runsBySpeaker(words) {
  const runs = [];
  for (const word of words) {
    const run = runs.at(-1);
    if (run !== undefined && run[0].speaker === word.speaker) run.push(word);
    else runs.push([word]);
  }
  return runs;
}

function toSubtitles(words, untilSec, prefix) {
  const nextStart = (i) => words[i]?.start ?? untilSec;
  const prefixWidth = Math.min(widthOf(prefix), Math.floor(LINE_WIDTH / 2));
  const measured = words.map(({ text }) => measure(text));
  return cut(words, measured, nextStart, prefixWidth).map(([from, to]) => {
    const { start } = words[from];
    const group = words.slice(from, to);
    const text = joined(group);
    const readable = Math.min(MAX_SEC, Math.max(MIN_SEC, widthOf(text.trim()) / READING_PER_SEC));
    const end = Math.max(start, Math.min(nextStart(to), Math.max(words[to - 1].end, start + readable)));
    return { start, end, text, lines: toLines(group, measured.slice(from, to), prefixWidth) };
  });
}

const joined = (words) => words.map((word) => word.text).join('');

/** As few lines as their width allows, and of these the most even ones. */
function toLines(words, measured, prefixWidth) {
  const firstsWith = (lineWidth) => {
    let filled = { lines: 0, used: prefixWidth };
    return measured.flatMap((word, i) => {
      const before = filled.lines;
      filled = fill(filled, word, lineWidth);
      return filled.lines > before ? [i] : [];
    });
  };
  const fewest = firstsWith(LINE_WIDTH).length;
  let [least, width] = [1, LINE_WIDTH];
  while (least < width) {
    const middle = Math.floor((least + width) / 2);
    if (firstsWith(middle).length <= fewest) width = middle;
    else least = middle + 1;
  }
  const firsts = firstsWith(width);
  return firsts.map((from, i) => joined(words.slice(from, firsts[i + 1])).trim());
}

/** Adds a word to the last line, or begins another one. The first word follows the prefix. */
function fill({ lines, used }, word, lineWidth) {
  if (lines === 0) return { lines: 1, used: used + word.width };
  const wider = used + word.space + word.width;
  return wider <= lineWidth ? { lines, used: wider } : { lines: lines + 1, used: word.width };
}

/** The index ranges of the best plan. Plans are made from the last word to the first. */
function cut(words, measured, nextStart, prefixWidth) {
  const breaks = words.map((word, i) => breakCost(word, words[i + 1]));
  const plans = new Array(words.length + 1);
  plans[words.length] = { short: 0, cost: 0, to: words.length };
  for (let from = words.length - 1; from >= 0; from--) {
    const start = nextStart(from);
    let filled = { lines: 0, used: prefixWidth };
    let characters = 0;
    let across = 0;
    for (let to = from + 1; to <= words.length; to++) {
      const word = measured[to - 1];
      characters += (to - 1 > from ? word.space : 0) + word.characters;
      filled = fill(filled, word, LINE_WIDTH);
      const holds = filled.lines <= MAX_LINES && characters <= MAX_CHARACTERS;
      if (!(holds && words[to - 1].end - start <= MAX_SEC + EPSILON) && to > from + 1) break;
      const short = plans[to].short + (nextStart(to) - start < MIN_SEC - EPSILON ? 1 : 0);
      const cost = plans[to].cost + COST.subtitle + across + breaks[to - 1];
      const best = plans[from];
      // Of equal plans, the one that fills this subtitle more is taken.
      if (best === undefined || short < best.short || (short === best.short && cost <= best.cost))
        plans[from] = { short, cost, to };
      if (breaks[to - 1] === 0) across += COST.acrossSentences;
    }
  }
  const ranges = [];
  for (let from = 0; from < words.length; from = plans[from].to) ranges.push([from, plans[from].to]);
  return ranges;
}

function breakCost(word, next) {
  if (next === undefined || endsSentence(word, next) || isLongPause(word, next)) return 0;
  if (endsClause(word)) return COST.clause;
  if (next.start - word.end >= PAUSE_SEC - EPSILON) return COST.pause;
  return CONJUNCTIONS.has(next.text.trim()) ? COST.conjunction : COST.anywhere;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const ASCII = /^[ -~]*$/;
/** What is drawn in a square, and as wide as two letters. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

function measure(text) {
  const bare = text.trimStart();
  return { space: text.length - bare.length, characters: charactersOf(bare).length, width: widthOf(bare) };
}

const charactersOf = (text) =>
  ASCII.test(text) ? [...text] : [...graphemes.segment(text)].map(({ segment }) => segment);

const widthOf = (text) =>
  charactersOf(text).reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);

const prefixOf = (speaker) => (speaker === undefined ? '' : `${speaker}: `);

export function toSrt(cues) {
  return cues
    .map(({ start, end, lines, speaker }, i) => {
      const said = shown([prefixOf(speaker) + lines[0], ...lines.slice(1)]);
      return `${i + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${said}\n\n`;
    })
    .join('');
}

export function toVtt(cues) {
  const body = cues.map(({ start, end, lines, speaker }) => {
    const voice = speaker === undefined ? '' : `<v ${escapeVtt(cueText(speaker))}>`;
    return `${clock(start, '.')} --> ${clock(end, '.')}\n${voice}${escapeVtt(shown(lines))}\n\n`;
  });
  return `WEBVTT\n\n${body.join('')}`;
}

const shown = (lines) =>
  lines
    .map(cueText)
    .filter((line) => line !== '')
    .join('\n');

/** A blank line or an arrow inside a cue would end it early. */
function cueText(text) {
  return text
    .replace(/\s+/g, ' ')
    .replace(/(?<!-)-{2,}>/g, '->')
    .trim();
}

function escapeVtt(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function clock(sec, mark) {
  const ms = Math.max(0, Math.round(sec * 1000));
  const pad = (value, width = 2) => String(value).padStart(width, '0');
  const [h, m, s] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60];
  return `${pad(h)}:${pad(m)}:${pad(s)}${mark}${pad(ms % 1000, 3)}`;
}
