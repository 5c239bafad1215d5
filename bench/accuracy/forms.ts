/** The forms in which `npm run bench -- accuracy` has every peer hear the prompts; each has a table of its own. */
import { fromFarAway, overTelephone, quieter, withBabble, withWhiteNoise } from '../clips/degraded-clips.ts';
import { clipInTurns, longClip, repeatedClip } from '../clips/long-clips.ts';
import { PROMPT_LANGUAGES, type Prompt, prompts as promptsIn } from '../clips/prompts.ts';

export interface Form {
  title: string;
  timed?: boolean;
  stream?: boolean;
  /** Whether no language is given; `changing` where a clip has several, so that none of them is right for all of it. */
  detected?: true | 'changing';
  /** Recordings with long pauses, which faster-whisper would fill with words unless its own filter removes them. */
  vad?: boolean;
  /** Makes the clips out of the prompts of one group. */
  clips?: (prompts: Prompt[]) => Prompt[];
}

const SNR_DB = 10;
const QUIETER_DB = 30;
const JOINED_SEC = { least: 300, most: 600 };
const IN_TURNS = { files: 3, sentences: 8 };
const REPEATED = { sentences: 3, times: 20, pauseSec: 0.9 };

export const FORMS: Readonly<Record<string, Form>> = {
  json: { title: 'Text alone, language given' },
  timed: { title: 'With times of the segments', timed: true },
  streamed: { title: 'Streamed', stream: true },
  detected: { title: 'Language detected', detected: true },
  telephone: { title: 'Over the telephone: G.711 at 8 kHz', clips: each(overTelephone) },
  quiet: { title: `Softer by ${QUIETER_DB} dB`, clips: each((prompt) => quieter(prompt, QUIETER_DB)) },
  distant: { title: 'From the far end of a room', clips: each(fromFarAway) },
  noise: {
    title: `In white noise, ${SNR_DB} dB below the voice`,
    clips: each((prompt) => withWhiteNoise(prompt, SNR_DB)),
  },
  babble: {
    title: `Among six other voices, ${SNR_DB} dB below the voice`,
    clips: each((prompt) => withBabble(prompt, SNR_DB)),
  },
  joined: { title: 'Joined to 5 to 10 min, pauses of 1.2 s', vad: true, clips: joined('joined', 1.2) },
  'joined-closely': {
    title: 'Joined to 5 to 10 min, pauses of 0.4 s',
    vad: true,
    clips: joined('joined-closely', 0.4),
  },
  'joined-without-pauses': {
    title: 'Joined to 5 to 10 min, without pauses',
    vad: true,
    clips: joined('joined-without-pauses', 0),
  },
  'joined-timed': {
    title: 'Joined to 5 to 10 min, pauses of 1.2 s, with times of the segments',
    timed: true,
    vad: true,
    clips: joined('joined', 1.2),
  },
  'two-languages': {
    title: 'A sentence in each of two languages in turn, pauses of 0.6 s, language detected',
    detected: 'changing',
    vad: true,
    clips: inTurns(2, 0.6),
  },
  'two-languages-apart': {
    title: 'A sentence in each of two languages in turn, pauses of 2 s, language detected',
    detected: 'changing',
    vad: true,
    clips: inTurns(2, 2),
  },
  'three-languages': {
    title: 'A sentence in each of three languages in turn, pauses of 0.6 s, language detected',
    detected: 'changing',
    vad: true,
    clips: inTurns(3, 0.6),
  },
  repeated: {
    title: `The same sentence ${REPEATED.times} times, ${REPEATED.pauseSec} s apart`,
    vad: true,
    clips: (prompts) =>
      prompts
        .filter(({ seconds }) => seconds >= 2 && seconds < 5)
        .slice(0, REPEATED.sentences)
        .map((prompt) => ({
          ...prompt,
          ...repeatedClip(prompt, REPEATED.times, REPEATED.pauseSec),
          text: again(prompt),
        })),
  },
};

/** The group and the languages after it, English only as the first. Words are counted in the spelling of the last. */
function inTurns(languages: number, pauseSec: number) {
  return (prompts: Prompt[]): Prompt[] => {
    const [first] = prompts;
    const own = PROMPT_LANGUAGES.map(String).indexOf(first?.spoken ?? '');
    if (first === undefined || own < 0) return [];
    const [, ...notEnglish] = PROMPT_LANGUAGES;
    const spoken = [...PROMPT_LANGUAGES, ...notEnglish].slice(own, own + languages);
    const others = spoken
      .slice(1)
      .map((language) => promptsIn(language).filter((p) => p.tuning === first.tuning));
    return Array.from({ length: IN_TURNS.files }, (_, file) => {
      const some = (all: Prompt[]) => all.slice(file * IN_TURNS.sentences, (file + 1) * IN_TURNS.sentences);
      const name = `${spoken.join('-')}-${file}-${pauseSec}${first.tuning ? '-tuning' : ''}`;
      const clip = clipInTurns(name, [prompts, ...others].map(some), pauseSec);
      return { ...first, ...clip, spoken: spoken.at(-1) ?? first.spoken, text: clip.text ?? '' };
    }).filter(({ seconds }) => seconds > 0);
  };
}

const again = ({ text }: Prompt) => Array(REPEATED.times).fill(text).join(' ');

function each(change: (prompt: Prompt) => Prompt) {
  return (prompts: Prompt[]) => prompts.map(change);
}

/** No prompt comes twice, unless there are too few for the shortest file. */
function joined(name: string, pauseSec: number) {
  return (prompts: Prompt[]): Prompt[] => {
    const [first] = prompts;
    if (first === undefined) return [];
    const all = prompts.reduce((sum, { seconds }) => sum + seconds + pauseSec, 0);
    const seconds = Math.min(JOINED_SEC.most, Math.max(JOINED_SEC.least, all));
    const clip = longClip(`${name}-${first.group.replaceAll(/\W+/g, '-')}`, prompts, { seconds, pauseSec });
    return clip === null ? [] : [{ ...first, ...clip, text: clip.text ?? '' }];
  };
}
