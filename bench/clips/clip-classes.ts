/** Each class of clips holds what the peers are compared on. */
import { existsSync, readFileSync } from 'node:fs';
import { type Clip, fileClip, folderClips, publicClips, SAMPLE } from './clips.ts';
import { hardClips, hardSentences } from './hard-clips.ts';
import { longClip } from './long-clips.ts';
import { voiceClips } from './voice-clips.ts';

export interface ClipClass {
  id: string;
  title: string;
  clips: Clip[];
  /** ISO 639 code; `auto` asks the peer to detect it. */
  language: string;
  /** ISO 639 code of the spoken language, by which the texts are compared. */
  spoken: string;
  rounds: number;
  vad: boolean;
  /** True where the time to the first segment is of interest. */
  stream: boolean;
  /** True where the answer has times of its segments. */
  timed?: boolean;
  /** True where the detected language is of interest. */
  detected?: boolean;
}

export interface ClassOptions {
  /** Measures this one file instead of all classes. */
  audio?: string | undefined;
  /** Gives the text of that file, or names a file that holds it. */
  reference?: string | undefined;
  /** Names a folder with further clips. */
  clips?: string | undefined;
  language: string;
  rounds?: number | undefined;
  vad: boolean;
  stream: boolean;
}

export const CLASS_IDS = [
  'commands',
  'sentences',
  'commands-timed',
  'sentences-timed',
  'commands-auto',
  'sentences-auto',
  'longer',
  '60s',
  '6min',
  '6min-timed',
  '6min-streamed',
  '60min',
  'hard-timed',
  '6min-hard-timed',
  'voices',
] as const;

export function clipClasses(options: ClassOptions, only: string[]): ClipClass[] {
  const { language } = options;
  const defaults = {
    language,
    spoken: language === 'auto' ? 'en' : language,
    rounds: options.rounds ?? 5,
    vad: options.vad,
    stream: options.stream,
  };
  if (options.audio !== undefined) {
    const clips = [fileClip(options.audio, referenceText(options.audio, options.reference))];
    return [{ id: 'audio', title: 'The given file', clips, ...defaults }];
  }
  const given = options.clips === undefined ? [] : folderClips(options.clips);
  const all = [...(language === 'en' ? publicClips() : []), ...given].filter(({ seconds }) => seconds >= 2);
  const short = all.filter(({ seconds }) => seconds <= 15);
  const commands = { ...defaults, clips: short.filter(({ seconds }) => seconds <= 5) };
  const sentences = { ...defaults, clips: short.filter(({ seconds }) => seconds > 5) };
  const long = (id: string, seconds: number, pauseSec: number) => {
    const clip = only.includes(id) ? longClip(id, short, { seconds, pauseSec }) : null;
    return { ...defaults, id, clips: clip === null ? [] : [clip] };
  };
  const classes: ClipClass[] = [
    { ...commands, id: 'commands', title: 'Short commands, 2 to 5 s' },
    { ...sentences, id: 'sentences', title: 'Sentences, 5 to 15 s' },
    { ...commands, id: 'commands-timed', title: 'Short commands, with the times of segments', timed: true },
    { ...sentences, id: 'sentences-timed', title: 'Sentences, with the times of segments', timed: true },
    { ...commands, id: 'commands-auto', title: 'Short commands, language detected', language: 'auto' },
    { ...sentences, id: 'sentences-auto', title: 'Sentences, language detected', language: 'auto' },
    { ...defaults, id: 'longer', title: 'Given clips over 15 s', clips: all.filter((c) => c.seconds > 15) },
    { ...long('60s', 60, 0.5), title: '60 s, pauses of 0.5 s' },
    {
      ...long('6min', 360, 3),
      title: '6 min, pauses of 3 s (faster-whisper with its voice activity filter)',
      rounds: options.rounds ?? 3,
      vad: true,
    },
    {
      ...long('6min-timed', 360, 3),
      title: 'The same, with the times of segments',
      rounds: options.rounds ?? 3,
      vad: true,
      timed: true,
    },
    {
      ...long('6min-streamed', 360, 3),
      title: 'The same, streamed: voxgate then aligns every word for the times of the segments',
      rounds: options.rounds ?? 3,
      vad: true,
      stream: true,
    },
    {
      ...long('60min', 3600, 1),
      title:
        '60 min, pauses of 1 s, with the times of segments (faster-whisper with its voice activity filter)',
      rounds: options.rounds ?? 1,
      vad: true,
      timed: true,
    },
    ...(language === 'en' ? hardClasses(defaults, options, only) : []),
    {
      ...defaults,
      id: 'voices',
      title: 'Word error rate: 40 sentences, each by three machine voices',
      clips: language === 'en' && only.includes('voices') ? voiceClips() : [],
      rounds: options.rounds ?? 1,
    },
  ];
  return classes.filter(({ id, clips }) => only.includes(id) && clips.length > 0);
}

function hardClasses(
  defaults: Omit<ClipClass, 'id' | 'title' | 'clips'>,
  options: ClassOptions,
  only: string[],
): ClipClass[] {
  return [
    {
      ...defaults,
      id: 'hard-timed',
      title: 'Hard to hear, 2 to 15 s, in five languages, with the times of segments',
      clips: only.includes('hard-timed') ? hardClips() : [],
      timed: true,
    },
    {
      ...defaults,
      id: '6min-hard-timed',
      title: '6 min that are hard to hear, pauses of 1 s, with the times of segments',
      clips: only.includes('6min-hard-timed') ? hardRecording() : [],
      rounds: options.rounds ?? 3,
      vad: true,
      timed: true,
    },
  ];
}

function hardRecording(): Clip[] {
  const clip = longClip('6min-hard', hardSentences(), { seconds: 360, pauseSec: 1 });
  return clip === null ? [] : [clip];
}

function referenceText(audio: string, given: string | undefined): string | null {
  if (given !== undefined) return existsSync(given) ? readFileSync(given, 'utf8') : given;
  return audio === SAMPLE ? (publicClips()[0]?.text ?? null) : null;
}
