/**
 * Lists, for each form of `npm run bench -- accuracy`, the words in which the gateway differs from the peer with the fewest
 * errors, so that what was lost can be read.
 */
import { sumOf } from '../common/numbers.ts';
import { type Heard, OWN, peersOf } from './report.ts';

/** The columns of a file with tabs between them. */
export const DIFFERENCE_COLUMNS = [
  'form',
  'group',
  'clip',
  'seconds',
  'more errors',
  OWN,
  'best peer',
  'text',
];

/** One line for each clip in which the two do not make the same errors; the worst ones come first. */
export function differenceLines(form: string, heard: Heard[]): string[] {
  const errors = (name: string) =>
    sumOf(
      heard.filter(({ peer }) => peer === name),
      (one) => one.errors,
    );
  const [best] = peersOf(heard)
    .filter((peer) => peer !== OWN)
    .toSorted((a, b) => errors(a) - errors(b));
  const theirs = new Map(heard.filter(({ peer }) => peer === best).map((h) => [h.clip, h]));
  return heard
    .filter(({ peer }) => peer === OWN)
    .flatMap((own) => {
      const other = theirs.get(own.clip);
      return other === undefined || own.wrong.join() === other.wrong.join() ? [] : [{ own, other }];
    })
    .toSorted((a, b) => b.own.errors - b.other.errors - (a.own.errors - a.other.errors))
    .map(({ own, other }) =>
      [
        form,
        own.clip.group,
        own.clip.name,
        own.clip.seconds.toFixed(1),
        own.errors - other.errors,
        own.wrong.join('; '),
        `${best}: ${other.wrong.join('; ')}`,
        own.clip.text,
      ].join('\t'),
    );
}
