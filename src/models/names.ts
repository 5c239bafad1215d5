/**
 * The names that requests may use besides the ids of the catalogue. They are what programs and services of the field
 * call the same weights, so that a client that was written for one of them needs another address and nothing else.
 * Every name is listed with who uses it; a name that nobody sends is left out.
 */

/** What a name stands for. */
export interface Meaning {
  /** An id of the catalogue, or `auto`. */
  id: string;
  /** The model that takes the place of weights for English only until they are installed. */
  otherwise?: string;
  /** The language of the name, which a model of several languages would otherwise have to detect. */
  language?: 'en';
}

/** OpenAI's model that tells speakers apart. */
export const DIARIZES = 'gpt-4o-transcribe-diarize';
/** OpenAI's model that says which languages it heard. */
export const TELLS_LANGUAGES = 'gpt-transcribe';

/** OpenAI's models that converse. Their clients also name them in the address of a session that only transcribes. */
export const CONVERSES = [
  ...['gpt-realtime', 'gpt-realtime-mini', 'gpt-4o-realtime-preview', 'gpt-4o-mini-realtime-preview'],
];

/** Names of OpenAI's models, which clients send when they leave the choice to the server. */
const MEANS_AUTO: readonly string[] = [
  ...['whisper-1', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe', DIARIZES, TELLS_LANGUAGES],
  // Live sessions. Clients name a model of conversations in the address, also where they only transcribe.
  ...['gpt-live-transcribe', 'gpt-realtime-whisper', ...CONVERSES],
];

/**
 * The name of OpenAI's model without its owner, the day of its release and the number of its generation. OpenAI
 * releases new ones often, and here all of them mean the same.
 */
const openAiModel = (name: string): string =>
  name
    .replace(/^openai\//, '')
    .replace(/-\d{4}-\d\d-\d\d$/, '')
    .replace(/^gpt-realtime-\d{1,3}(\.\d{1,3})?(?=-mini$|$)/, 'gpt-realtime');

/** The names of the settings (`SVC_MODEL_ALIASES`), each with what it stands for. */
export type Aliases = Readonly<Record<string, string>>;

/** What a name of the settings stands for; any other name stands for itself. */
export const withoutAlias = (name: string, aliases: Aliases): string =>
  (Object.hasOwn(aliases, name) ? aliases[name] : undefined) ?? name;

/**
 * Whether a name is that of one of these models of OpenAI, or an alias of one. A client that names OpenAI's model gets
 * what that model answers, also where an alias of the same name has put other weights in its place.
 */
export const isOpenAiModel = (models: readonly string[], name: string, aliases: Aliases): boolean =>
  [name, withoutAlias(name, aliases)].some((meant) => models.includes(openAiModel(meant)));

interface NameGroup {
  usedBy: string;
  /** What may stand for the star in `names`, each with its meaning. */
  of: Readonly<Record<string, Meaning>>;
  names: readonly string[];
}

const multilingual = (size: string): Meaning => ({ id: `multilingual-${size}` });
const english = (size: string): Meaning => ({
  id: `english-${size}`,
  // The model of the same size needs less than the large one that was distilled.
  otherwise: `multilingual-${size.replace('distil-', '')}`,
  language: 'en',
});

const DISTILLED: NameGroup['of'] = {
  // Other generations of the same model are not served.
  'large-v3': multilingual('distil-large-v3'),
  'large-v3.5': multilingual('distil-large-v3'),
  'large-v2': multilingual('distil-large-v3'),
  'medium.en': english('distil-medium'),
  'small.en': english('distil-small'),
};

const WHISPER: NameGroup['of'] = {
  ...Object.fromEntries(
    ['tiny', 'base', 'small', 'medium'].flatMap((size) => [
      [size, multilingual(size)],
      [`${size}.en`, english(size)],
      [`${size}-en`, english(size)],
    ]),
  ),
  large: multilingual('large-v3'),
  'large-v1': multilingual('large-v1'),
  'large-v2': multilingual('large-v2'),
  'large-v3': multilingual('large-v3'),
  'large-v3-turbo': multilingual('large-v3-turbo'),
  'large-turbo': multilingual('large-v3-turbo'),
  turbo: multilingual('large-v3-turbo'),
  ...Object.fromEntries(Object.entries(DISTILLED).map(([size, meaning]) => [`distil-${size}`, meaning])),
};

const TURBO: NameGroup['of'] = { 'large-v3-turbo': multilingual('large-v3-turbo') };
const PARAKEET: NameGroup['of'] = {
  'parakeet-tdt-0.6b-v3': { id: 'european' },
  // It knows English only, which the third generation knows as well.
  'parakeet-tdt-0.6b-v2': { id: 'european' },
};
const SENSE_VOICE: NameGroup['of'] = { SenseVoiceSmall: { id: 'cjk' } };

/** The table. */
export const NAME_GROUPS: readonly NameGroup[] = [
  {
    usedBy: 'OpenAI, and every client with a setting for its models',
    of: Object.fromEntries(MEANS_AUTO.map((name) => [name, { id: 'auto' }])),
    names: ['*'],
  },
  {
    usedBy:
      'openai-whisper, faster-whisper, whisper.cpp, WhisperX, whisper-asr-webservice, wyoming-faster-whisper',
    of: WHISPER,
    names: ['*'],
  },
  { usedBy: 'Groq, LocalAI, Xinference, apps that bundle whisper.cpp', of: WHISPER, names: ['whisper-*'] },
  { usedBy: 'Transformers, vLLM, DeepInfra', of: WHISPER, names: ['openai/whisper-*'] },
  {
    usedBy: 'faster-whisper, speaches (the second are older versions)',
    of: WHISPER,
    names: ['Systran/faster-whisper-*', 'guillaumekln/faster-whisper-*'],
  },
  {
    usedBy: 'faster-whisper (the first two, which are one repository), speaches (the third)',
    of: TURBO,
    names: [
      'mobiuslabsgmbh/faster-whisper-*',
      'dropbox-dash/faster-whisper-*',
      'deepdml/faster-whisper-*', // with -ct2
    ],
  },
  { usedBy: 'whisper.cpp (its files)', of: WHISPER, names: ['ggml-*'] },
  {
    usedBy: 'mlx-whisper, mlx-audio',
    of: WHISPER,
    names: ['mlx-community/whisper-*'],
  },
  { usedBy: 'Groq', of: { 'distil-whisper-large-v3-en': multilingual('distil-large-v3') }, names: ['*'] },
  {
    usedBy: 'Fireworks',
    of: { 'whisper-v3': multilingual('large-v3'), 'whisper-v3-turbo': multilingual('large-v3-turbo') },
    names: ['*'],
  },
  {
    usedBy: 'Transformers, vLLM (the first), faster-whisper, speaches (the second), mlx-whisper (the third)',
    of: DISTILLED,
    names: ['distil-whisper/distil-*', 'Systran/faster-distil-whisper-*', 'mlx-community/distil-whisper-*'],
  },
  {
    usedBy:
      'NeMo (the second), onnx-asr, speaches (the third, with -onnx), mlx-audio, parakeet-mlx (the last)',
    of: PARAKEET,
    names: ['*', 'nvidia/*', 'istupakov/*', 'mlx-community/*'],
  },
  {
    usedBy: 'FunASR, Xinference, ModelScope (the last)',
    of: SENSE_VOICE,
    names: ['*', 'FunAudioLLM/*', 'iic/*'],
  },
  { usedBy: 'apps that bundle it', of: { 'sensevoice-small': { id: 'cjk' } }, names: ['*'] },
];

const MEANINGS: ReadonlyMap<string, Meaning> = new Map(
  NAME_GROUPS.flatMap(({ of, names }) =>
    names.flatMap((pattern) =>
      Object.entries(of).map(([size, meaning]) => [pattern.replace('*', size), meaning] as const),
    ),
  ),
);

/** Every name of the table, for suggestions. */
export const BUILT_IN_NAMES: readonly string[] = [...MEANINGS.keys()];

/**
 * How weights are packed: for which engine, with how many bits, in which file. It says nothing about which weights
 * they are, and the gateway has its own packing (`SVC_DEVICE` decides it).
 */
const PACKING = /(?:-(?:mlx|asr|ct2|ggml|onnx))?(?:-(?:q\d(?:_[\dk])?|\dbit|int8|fp16|fp32))?(?:\.bin)?$/;

/** No name of the table is longer, with any packing behind it. A client may send a name of many megabytes. */
const MOST_CHARACTERS = 128;

/** What a name of the table stands for, also with the day of a release or a packing behind it; else undefined. */
export function meaningOf(name: string): Meaning | undefined {
  if (name.length > MOST_CHARACTERS) return undefined;
  return MEANINGS.get(name) ?? MEANINGS.get(openAiModel(name)) ?? MEANINGS.get(name.replace(PACKING, ''));
}
