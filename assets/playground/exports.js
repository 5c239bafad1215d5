/** Writes a transcript in the formats that people take away. Loaded when the first is asked for. */
import { joined, placeOf, shortTime, toParagraphs, toText } from './captions.js';
import { toCues, toSrt, toVtt } from './cues.js';

const TYPES = {
  txt: 'text/plain',
  md: 'text/markdown',
  srt: 'application/x-subrip',
  vtt: 'text/vtt',
  csv: 'text/csv',
  json: 'application/json',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
};

/**
 * @param answer the last event of the gateway; null when the stream broke off before it
 * @param title the name of the sound, for the formats that have a title
 * @param translation `{start, end, text}[]`, which the formats that can have beside the text; or null
 * @returns {Promise<Blob>}
 */
export async function toFile(kind, segments, answer, title, translation = null) {
  const cues = () => toCues(segments, answer?.words, answer?.duration ?? segments.at(-1)?.end ?? 0);
  const both = () => (translation === null ? segments : withTranslation(segments, translation));
  const body = await {
    txt: () => toText(segments),
    md: () => toMarkdown(both(), title),
    srt: () => toSrt(cues()),
    vtt: () => toVtt(cues()),
    csv: () => toCsv(both()),
    json: () => toJson(answer ?? { segments }, translation),
    docx: async () => (await import('./docx.js')).toDocx(both(), title),
  }[kind]();
  return new Blob([body], { type: TYPES[kind] });
}

/** The translation in the place of the text, with the speakers of the text. */
export const inTranslation = (segments, translation) =>
  translation.map(({ start, end, text }) => {
    const { speaker } = segments[placeOf({ start, end }, segments)] ?? {};
    return { start, end, text: ` ${text.trim()}`, ...(speaker !== undefined && { speaker }) };
  });

/** Each segment with its part of the translation, `translation`, which may be empty. */
function withTranslation(segments, translation) {
  const both = segments.map((segment) => ({ ...segment, translation: '' }));
  for (const part of translation) {
    const segment = both[placeOf(part, both)];
    if (segment !== undefined) segment.translation += ` ${part.text.trim()}`;
  }
  return both;
}

function toJson(answer, translation) {
  const text = translation
    ?.map((part) => part.text.trim())
    .join(' ')
    .trim();
  const whole = {
    ...answer,
    ...(translation && { translation: { language: 'english', text, segments: translation } }),
  };
  return `${JSON.stringify(whole, null, 2)}\n`;
}

const plain = (text) => text.replace(/[\\`*_[\]<>#|~]/g, '\\$&');

function toMarkdown(segments, title) {
  const paragraphs = toParagraphs(segments);
  const heads = paragraphs.map(([{ speaker, start }]) =>
    [...(speaker === undefined ? [] : [`**${plain(speaker)}**`]), `*${shortTime(start)}*`].join(' '),
  );
  const texts = paragraphs.map((paragraph) => plain(joined(paragraph)));
  const heading = `# ${plain(title)}\n\n`;
  if (segments[0]?.translation === undefined) {
    // What would begin a list or a rule begins a text.
    const parts = texts.map(
      (text, i) => `${heads[i]}\n\n${text.replace(/^(\d+)([.)])|^([-+=])/, '$1\\$2$3')}`,
    );
    return `${heading}${parts.join('\n\n')}\n`;
  }
  const rows = texts.map((text, i) => [heads[i], text, plain(joined(paragraphs[i], 'translation'))]);
  const table = [['', 'Text', 'Translation'], ['---', '---', '---'], ...rows];
  return `${heading}${table.map((row) => `| ${row.join(' | ')} |\n`).join('')}`;
}

/** RFC 4180, with the mark by which spreadsheets know UTF-8. */
function toCsv(segments) {
  const has = (name) => segments.some((segment) => segment[name] !== undefined);
  const names = [
    'start',
    'end',
    ...['speaker', 'language'].filter(has),
    'text', // near the end, because it is the longest
    ...['translation'].filter(has),
  ];
  const rows = segments.map((segment) => names.map((name) => csvCell(segment[name])));
  return `\ufeff${[names, ...rows].map((row) => `${row.join(',')}\r\n`).join('')}`;
}

function csvCell(value = '') {
  if (typeof value === 'number') return value.toFixed(3);
  // Spreadsheets would run a text that begins like a formula.
  const text = value.trim().replace(/^[=+@]/, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
