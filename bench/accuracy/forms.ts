/** The forms in which `npm run bench -- accuracy` has every peer hear the prompts; each has a table of its own. */
import {
  fromFarAway,
  overTelephone,
  quieter,
  slower,
  withBabble,
  withWhiteNoise,
} from '../clips/degraded-clips.ts';
import { SLOW_TEMPO, singleWords, WORDS } from '../clips/hard-clips.ts';
import { clipInTurns, longClip, repeatedClip } from '../clips/long-clips.ts';
import { PROMPT_LANGUAGES, type Prompt, prompts as promptsIn } from '../clips/prompts.ts';
import { sumOf } from '../common/numbers.ts';

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
  slow: { title: 'Slowly: at two thirds of the speed', clips: each((prompt) => slower(prompt, SLOW_TEMPO)) },
  words: {
    title: `Single words, ${WORDS.pauseSec} s apart, in clips of ${WORDS.seconds} s at most`,
    clips: wordsInClips,
  },
  joined: joined('joined', 1.2, ', pauses of 1.2 s'),
  'joined-closely': joined('joined-closely', 0.4, ', pauses of 0.4 s'),
  'joined-without-pauses': joined('joined-without-pauses', 0, ', without pauses'),
  'joined-timed': {
    ...joined('joined', 1.2, ', pauses of 1.2 s, with times of the segments'),
    timed: true,
  },
  'two-languages': inTurns('two', 2, 0.6),
  'two-languages-apart': inTurns('two', 2, 2),
  'three-languages': inTurns('three', 3, 0.6),
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

/** A sentence of each language in turn until one has no more: the group and those after it, English only as the first. */
function inTurns(count: string, languages: number, pauseSec: number): Form {
  const clips = (prompts: Prompt[]) => {
    const [first] = prompts;
    const own = PROMPT_LANGUAGES.map(String).indexOf(first?.spoken ?? '');
    if (first === undefined || own < 0) return [];
    const [, ...notEnglish] = PROMPT_LANGUAGES;
    const spoken = [...PROMPT_LANGUAGES, ...notEnglish].slice(own, own + languages);
    const others = spoken
      .slice(1)
      .map((language) => promptsIn(language).filter((p) => p.tuning === first.tuning));
    return Array.from({ length: IN_TURNS.files }, (_, file) => {
      const some = [prompts, ...others].map((all) =>
        all.slice(file * IN_TURNS.sentences, (file + 1) * IN_TURNS.sentences),
      );
      const rounds = Math.min(...some.map(({ length }) => length));
      const inTurns = Array.from({ length: rounds }, (_, i) => some.map((all) => all[i] as Prompt)).flat();
      const name = `${spoken.join('-')}-${file}-${pauseSec}${first.tuning ? '-tuning' : ''}`;
      const clip = clipInTurns(name, inTurns, pauseSec);
      const sentences = inTurns.map(({ text, spoken }) => ({ text, language: spoken }));
      return { ...first, ...clip, text: clip.text ?? '', sentences };
    }).filter(({ seconds }) => seconds > 0);
  };
  const title = `A sentence in each of ${count} languages in turn, pauses of ${pauseSec} s, language detected`;
  return { title, detected: 'changing', vad: true, clips };
}

/** Words that belong to no sentence, so that nothing around a word tells what it is. */
function wordsInClips(prompts: Prompt[]): Prompt[] {
  const [first] = prompts;
  if (first === undefined || first.group !== first.spoken) return [];
  const clips: Prompt[][] = [[]];
  let seconds = 0;
  for (const word of singleWords(first.spoken).filter(({ tuning }) => tuning === first.tuning)) {
    seconds += word.seconds + WORDS.pauseSec;
    if (seconds > WORDS.seconds) {
      clips.push([]);
      seconds = word.seconds + WORDS.pauseSec;
    }
    clips.at(-1)?.push(word);
  }
  return clips.map((words, i) => {
    const clip = clipInTurns(`words-${first.group}-${i}`, words, WORDS.pauseSec);
    return { ...first, ...clip, text: clip.text ?? '' };
  });
}

const again = ({ text }: Prompt) => Array(REPEATED.times).fill(text).join(' ');

function each(change: (prompt: Prompt) => Prompt) {
  return (prompts: Prompt[]) => prompts.map(change);
}

/** No prompt comes twice, unless there are too few for the shortest file. */
function joined(name: string, pauseSec: number, how: string): Form {
  const clips = (prompts: Prompt[]) => {
    const [first] = prompts;
    if (first === undefined) return [];
    const all = sumOf(prompts, ({ seconds }) => seconds + pauseSec);
    const seconds = Math.min(JOINED_SEC.most, Math.max(JOINED_SEC.least, all));
    const joined = longClip(`${name}-${first.group.replaceAll(/\W+/g, '-')}`, prompts, { seconds, pauseSec });
    return joined.map((clip) => ({ ...first, ...clip, text: clip.text ?? '' }));
  };
  return { title: `Joined to 5 to 10 min${how}`, vad: true, clips };
}
