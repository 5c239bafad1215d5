/** Writes the tables of `npm run bench -- accuracy`: word error rates and times by group, by length and by peer. */
import type { Prompt } from '../clips/prompts.ts';
import { percent, sumOf } from '../common/numbers.ts';
import { markdownTable } from '../common/page.ts';
import type { Outcome } from '../compare/measurement.ts';
import type { ErrorRates, WordErrors } from './error-rate.ts';

/** What one peer heard in one clip. */
export interface Heard extends WordErrors {
  peer: string;
  clip: Prompt;
  /** NaN where the text was known from another run. */
  wallMs: number;
  text: string;
  /** The detected language; absent where it was given. */
  language?: string;
}

interface Row {
  title: string;
  holds: (clip: Prompt) => boolean;
}

export const OWN = 'voxgate';
/** Limits in seconds. */
const LENGTHS = [
  [0, 2],
  [2, 5],
  [5, 8],
  [8, 15],
  [15, 60],
] as const;

export async function heardBy(outcomes: Outcome[], rates: ErrorRates): Promise<Heard[]> {
  const all: Heard[] = [];
  for (const { name: peer, runs } of outcomes)
    for (const { clip: heard, run } of runs) {
      const { wallMs, text, language } = run;
      const clip = heard as Prompt;
      const sentences = clip.sentences ?? [{ text: clip.text, language: clip.spoken }];
      const counted = await rates.count(sentences, text);
      all.push({
        peer,
        clip,
        wallMs,
        text,
        ...(language === undefined ? {} : { language }),
        errors: sumOf(counted, ({ errors }) => errors),
        words: sumOf(counted, ({ words }) => words),
        wrong: counted.flatMap(({ wrong }) => wrong),
      });
    }
  return all;
}

/** @param judging the groups that are shown together and by length */
export function accuracyTable(title: string, judging: readonly string[], heard: Heard[]): string {
  const peers = peersOf(heard);
  const rows = rowsOf(judging, heard).map(({ title, holds }) => {
    const its = heard.filter(({ clip }) => holds(clip));
    const own = its.filter(({ peer }) => peer === OWN);
    const first = its.filter(({ peer }) => peer === peers[0]);
    return [
      title,
      String(first.length),
      String(sumOf(first, ({ words }) => words)),
      ...peers.map((peer) =>
        rateAndRatio(
          its.filter((h) => h.peer === peer),
          own,
        ),
      ),
    ];
  });
  const minutes = sumOf(clipsOf(heard), ({ seconds }) => seconds) / 60;
  return [
    `### ${title}`,
    '',
    `${clipsOf(heard).length} clips, ${minutes.toFixed(0)} min.`,
    '',
    markdownTable(['', 'clips', 'words', ...peers], rows),
  ].join('\n');
}

/** How often each peer told the language that is spoken. */
export function detectionTable(judging: readonly string[], heard: Heard[]): string {
  const peers = peersOf(heard);
  const rows = rowsOf(judging, heard).map(({ title, holds }) => {
    const its = heard.filter(({ clip }) => holds(clip));
    return [
      title,
      ...peers.map((peer) => {
        const own = its.filter((h) => h.peer === peer);
        const right = own.filter(({ language, clip }) => language === clip.spoken).length;
        const others = mistaken(own);
        return `${right} of ${own.length}${others === '' ? '' : ` (${others})`}`;
      }),
    ];
  });
  return [
    'Clips whose language was found, and what the others were taken for:',
    '',
    markdownTable(['', ...peers], rows),
  ].join('\n');
}

export const peersOf = (heard: Heard[]) => [...new Set(heard.map(({ peer }) => peer))];

function rowsOf(judging: readonly string[], heard: Heard[]): Row[] {
  const clips = clipsOf(heard);
  const isJudging = ({ group }: Prompt) => judging.includes(group);
  const groups = [...new Set(clips.map(({ group }) => group))];
  const group = (name: string) => ({ title: name, holds: (clip: Prompt) => clip.group === name });
  const lengths = LENGTHS.map(([from, to]) => ({
    title: `${from} to ${to} s`,
    holds: (clip: Prompt) => isJudging(clip) && clip.seconds >= from && clip.seconds < to,
  }));
  const rows = [
    ...groups.filter((name) => judging.includes(name)).map(group),
    { title: 'all prompts', holds: isJudging },
    ...lengths,
    ...groups.filter((name) => !judging.includes(name)).map(group),
  ];
  return rows.filter(({ holds }) => clips.some(holds));
}

/** A row of the words, and behind it how many times as long as the gateway the peer took, where both were timed. */
function rateAndRatio(its: Heard[], own: Heard[]): string {
  const words = sumOf(its, (h) => h.words);
  if (words === 0) return '';
  const rate = percent(sumOf(its, (h) => h.errors) / words);
  const ratio = sumOf(its, (h) => h.wallMs) / sumOf(own, (h) => h.wallMs);
  return its[0]?.peer === OWN || !Number.isFinite(ratio) ? rate : `${rate}, ${ratio.toFixed(1)}x`;
}

/** Names the languages that were told wrongly, the most frequent first. */
function mistaken(heard: Heard[]): string {
  const counts = new Map<string, number>();
  for (const { language = 'none', clip } of heard) {
    if (language !== clip.spoken) counts.set(language, (counts.get(language) ?? 0) + 1);
  }
  return [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .map(([language, count]) => `${count} ${language}`)
    .join(', ');
}

const clipsOf = (heard: Heard[]) => [...new Set(heard.map(({ clip }) => clip))];
