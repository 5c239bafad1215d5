/**
 * Languages of the Whisper family: ISO 639 code and the lower-case English name OpenAI's API reports.
 * Source: the tokenizer table of the Whisper paper's reference code (Radford et al. 2022).
 */

const NAMES: Readonly<Record<string, string>> = {
  en: 'english',
  zh: 'chinese',
  de: 'german',
  es: 'spanish',
  ru: 'russian',
  ko: 'korean',
  fr: 'french',
  ja: 'japanese',
  pt: 'portuguese',
  tr: 'turkish',
  pl: 'polish',
  ca: 'catalan',
  nl: 'dutch',
  ar: 'arabic',
  sv: 'swedish',
  it: 'italian',
  id: 'indonesian',
  hi: 'hindi',
  fi: 'finnish',
  vi: 'vietnamese',
  he: 'hebrew',
  uk: 'ukrainian',
  el: 'greek',
  ms: 'malay',
  cs: 'czech',
  ro: 'romanian',
  da: 'danish',
  hu: 'hungarian',
  ta: 'tamil',
  no: 'norwegian',
  th: 'thai',
  ur: 'urdu',
  hr: 'croatian',
  bg: 'bulgarian',
  lt: 'lithuanian',
  la: 'latin',
  mi: 'maori',
  ml: 'malayalam',
  cy: 'welsh',
  sk: 'slovak',
  te: 'telugu',
  fa: 'persian',
  lv: 'latvian',
  bn: 'bengali',
  sr: 'serbian',
  az: 'azerbaijani',
  sl: 'slovenian',
  kn: 'kannada',
  et: 'estonian',
  mk: 'macedonian',
  br: 'breton',
  eu: 'basque',
  is: 'icelandic',
  hy: 'armenian',
  ne: 'nepali',
  mn: 'mongolian',
  bs: 'bosnian',
  kk: 'kazakh',
  sq: 'albanian',
  sw: 'swahili',
  gl: 'galician',
  mr: 'marathi',
  pa: 'punjabi',
  si: 'sinhala',
  km: 'khmer',
  sn: 'shona',
  yo: 'yoruba',
  so: 'somali',
  af: 'afrikaans',
  oc: 'occitan',
  ka: 'georgian',
  be: 'belarusian',
  tg: 'tajik',
  sd: 'sindhi',
  gu: 'gujarati',
  am: 'amharic',
  yi: 'yiddish',
  lo: 'lao',
  uz: 'uzbek',
  fo: 'faroese',
  ht: 'haitian creole',
  ps: 'pashto',
  tk: 'turkmen',
  nn: 'nynorsk',
  mt: 'maltese',
  sa: 'sanskrit',
  lb: 'luxembourgish',
  my: 'myanmar',
  bo: 'tibetan',
  tl: 'tagalog',
  mg: 'malagasy',
  as: 'assamese',
  tt: 'tatar',
  haw: 'hawaiian',
  ln: 'lingala',
  ha: 'hausa',
  ba: 'bashkir',
  jw: 'javanese',
  su: 'sundanese',
  yue: 'cantonese',
};

const OTHER_NAMES = new Map(
  Object.entries({
    burmese: 'my',
    valencian: 'ca',
    flemish: 'nl',
    haitian: 'ht',
    letzeburgesch: 'lb',
    pushto: 'ps',
    panjabi: 'pa',
    moldavian: 'ro',
    moldovan: 'ro',
    sinhalese: 'si',
    castilian: 'es',
    mandarin: 'zh',
    farsi: 'fa',
    // Codes of ISO 639 that stand for a language above.
    cmn: 'zh',
    iw: 'he',
    jv: 'jw',
    nb: 'no',
    fil: 'tl',
    in: 'id',
  }),
);

const CODES = new Map(Object.entries(NAMES).map(([code, name]) => [name, code]));

export const LANGUAGE_CODES: readonly string[] = Object.keys(NAMES);

/**
 * The code for what a client wrote: an ISO 639 code or an English name, any case, with region or script subtags
 * ignored (`pt-BR`, `zh_Hant`). Undefined when it is no language known here.
 */
export function parseLanguage(text: string): string | undefined {
  const whole = text.trim().toLowerCase();
  const primary = whole.split(/[-_]/)[0] ?? '';
  for (const candidate of [whole, primary]) {
    const code = OTHER_NAMES.get(candidate) ?? CODES.get(candidate) ?? candidate;
    if (Object.hasOwn(NAMES, code)) return code;
  }
  return undefined;
}

/** `en` -> `english`; a code without a name here stands for itself. */
export function languageName(code: string): string {
  return NAMES[code] ?? code;
}
