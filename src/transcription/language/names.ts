/**
 * Languages by ISO 639 code and lower-case English name. OpenAI's API uses the names of Whisper's tokenizer table
 * (Radford et al. 2022, reference code). Every other language gets its name from the Unicode CLDR (`Intl`).
 */
import { WHISPER_NAMES } from '../../models/whisper-languages.ts';

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
    // These are codes of ISO 639 for languages above.
    jv: 'jw',
    nb: 'no',
    fil: 'tl',
    // The Chinese languages of ISO 639-3 (macrolanguage `zho`) but for Cantonese: models hear and write them as Chinese.
    ...Object.fromEntries(
      ['cdo', 'cjy', 'cnp', 'cpx', 'csp', 'czh', 'czo', 'gan', 'hak', 'hsn', 'lzh', 'mnp', 'nan', 'wuu'].map(
        (code) => [code, 'zh'],
      ),
    ),
  }),
);

/**
 * Codes of ISO 639-1 that clients send for a country: Kanuri for South Korea, Northern Sami for Sweden. They are refused,
 * because the language would be the wrong one. Whoever means those languages has `kau` and `sme` for them.
 */
const COUNTRY_CODES = new Set(['kr', 'se']);
/** Other wrong codes that clients send, and the languages that they mean. */
const MISSPELLED = new Map(Object.entries({ sp: 'es', jap: 'ja', chn: 'zh', chs: 'zh', cht: 'zh' }));

/** `fallback: 'none'` gives undefined for a code that no language has. */
const CLDR = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });
const CODE = /^[a-z]{2,3}$/;
const COUNTRIES = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
const UNKNOWN_COUNTRY = 'zz';
/** Codes of ISO 639-2 that name no language: several, undetermined, no linguistic content, and without a code. */
const NO_LANGUAGE = new Set(['mul', 'und', 'zxx', 'mis']);
/** What stands for "find out": also the codes with which media files mark speech in several or unknown languages. */
const DETECT = new Set(['auto', 'und', 'mul']);

let codes: ReadonlyMap<string, string> | null = null;

/**
 * The code of each name. Where a name is in both tables, Whisper's code wins over CLDR's. It is made for the first
 * language that is looked up, because it takes 15 ms, which no start should wait for.
 */
function codeOfName(): ReadonlyMap<string, string> {
  codes ??= new Map([
    ...twoLetterCodes().map((code) => [cldrName(code) ?? code, code] as const),
    ...[...OTHER_NAMES].flatMap(([code, meant]) => {
      const name = cldrName(code);
      return name === undefined ? [] : [[name, meant] as const];
    }),
    ...Object.entries(WHISPER_NAMES).map(([code, name]) => [name, code] as const),
  ]);
  return codes;
}

/** The language of a tag, without its region and script. */
const primaryOf = (text: string) => text.trim().toLowerCase().split(/[-_]/, 1)[0] ?? '';

/** True for a text that leaves it to the model to find the language: nothing, `auto`, `und` and `mul`. */
export const namesNoLanguage = (text: string): boolean => text.trim() === '' || DETECT.has(primaryOf(text));

/**
 * The code of the language that a client wrote as a code of ISO 639-1 to 639-3 or as an English name, in any case.
 * Region and script subtags are ignored (`pt-BR`, `zh_Hant`). Undefined when the text names no language, and for the
 * codes that are taken for a country's.
 */
export function parseLanguage(text: string): string | undefined {
  const whole = text.trim().toLowerCase();
  const primary = primaryOf(text);
  if (COUNTRY_CODES.has(primary)) return undefined;
  for (const candidate of [whole, primary]) {
    const named = canonical(codeOfName().get(candidate) ?? candidate);
    const code = OTHER_NAMES.get(named) ?? named;
    if (Object.hasOwn(WHISPER_NAMES, code) || cldrName(code) !== undefined) return code;
  }
  return undefined;
}

/**
 * The code that was probably meant by one that names no language, as the end of a sentence: `, as ja for Japanese`. The
 * language of a country is the likely one of CLDR. Empty where there is nothing to propose.
 */
export function meantBy(text: string): string {
  const sent = primaryOf(text);
  const isCountry = /^[a-z]{2}$/.test(sent) && sent !== UNKNOWN_COUNTRY && COUNTRIES.of(sent.toUpperCase());
  const likely = isCountry ? new Intl.Locale(`und-${sent}`).maximize().language : undefined;
  const meant = parseLanguage(MISSPELLED.get(sent) ?? likely ?? '');
  return meant === undefined ? '' : `, as ${meant} for ${CLDR.of(meant) ?? languageName(meant)}`;
}

/** One code for a language with several, by CLDR's aliases: `deu`, `ger` -> `de`, `cmn` -> `zh`, `iw` -> `he`. */
function canonical(code: string): string {
  if (!CODE.test(code)) return code;
  return Intl.getCanonicalLocales(code)[0]?.split('-', 1)[0] ?? code;
}

/** The lower-case English name of a language: `en` -> `english`. A code without a name is returned as it is. */
export function languageName(code: string): string {
  return (Object.hasOwn(WHISPER_NAMES, code) ? WHISPER_NAMES[code] : cldrName(code)) ?? code;
}

function cldrName(code: string): string | undefined {
  if (!CODE.test(code) || NO_LANGUAGE.has(code)) return undefined;
  return CLDR.of(code)?.toLowerCase();
}

function twoLetterCodes(): string[] {
  const letters = [...'abcdefghijklmnopqrstuvwxyz'];
  return letters.flatMap((a) => letters.map((b) => a + b)).filter((code) => cldrName(code) !== undefined);
}

/**
 * The code under which a model of these languages knows the language; absent where it does not. The older Whisper models
 * write Cantonese as Mandarin, because the two are close enough.
 */
export const knownAs = (languages: readonly string[], code: string): string | undefined =>
  (code === 'yue' ? ['yue', 'zh'] : [code]).find((known) => languages.includes(known));
