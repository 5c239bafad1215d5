/** Writes the tables of `npm run bench -- speakers` as Markdown. */
import { known, percent, sumOf, total } from '../common/numbers.ts';
import { markdownTable } from '../common/page.ts';
import type { DiarizationErrors } from './diarization-error.ts';

/** What one program said about one file. */
export interface FileResult {
  peer: string;
  /** A class of the synthetic set, or `call`. */
  kind: string;
  file: string;
  seconds: number;
  errors: DiarizationErrors;
  wallMs: number;
  cpuSec: number;
}

const TITLES: Readonly<Record<string, string>> = {
  clean: 'clean',
  noise: 'noise, 5 to 20 dB',
  telephone: 'telephone',
  distant: 'distant',
  long: '10 min',
  meeting: 'meetings of 30 s',
  room: 'made rooms, 30 s',
  call: 'the labeled call',
};
const CONVERSATIONS: readonly string[] = ['clean', 'noise', 'telephone', 'distant', 'long'];
const RECORDINGS: readonly string[] = ['meeting', 'room', 'call'];

/** The share of speech that is missed, too much or given to another: seconds of all files together. */
export function errorRate(results: readonly FileResult[]): number {
  const wrong = ({ errors }: FileResult) => errors.missed + errors.falseAlarm + errors.confusion;
  return sumOf(results, wrong) / sumOf(results, ({ errors }) => errors.speech);
}

/** Diarization error rates by kind of file and by number of speakers. */
export function errorTable(results: readonly FileResult[]): string {
  const peers = [...new Set(results.map(({ peer }) => peer))];
  const row = (title: string, belongs: (result: FileResult) => boolean): string[][] => {
    const own = results.filter(belongs);
    if (own.length === 0) return [];
    const files = new Map(own.map(({ file, seconds }) => [file, seconds]));
    const minutes = total([...files.values()]) / 60;
    const rates = peers.map((peer) => percent(errorRate(own.filter((result) => result.peer === peer))));
    return [[title, String(files.size), minutes.toFixed(1), ...rates]];
  };
  const isTalk = ({ kind }: FileResult) => CONVERSATIONS.includes(kind);
  const ofKind = (kind: string) => row(TITLES[kind] ?? kind, (result) => result.kind === kind);
  const counts = new Set(results.filter(isTalk).map(({ errors }) => errors.known));
  const rows = [
    ...CONVERSATIONS.flatMap(ofKind),
    ...row('all conversations', isTalk),
    ...[...counts]
      .toSorted((a, b) => a - b)
      .flatMap((count) =>
        row(
          count === 1 ? '1 speaker' : `${count} speakers`,
          (result) => isTalk(result) && result.errors.known === count,
        ),
      ),
    ...RECORDINGS.flatMap(ofKind),
  ];
  return markdownTable(['', 'files', 'min', ...peers], rows);
}

/** What the errors are made of, and what each program takes. @param peaks MiB by program */
export function partsTable(results: readonly FileResult[], peaks: ReadonlyMap<string, number>): string {
  const peers = [...new Set(results.map(({ peer }) => peer))];
  const groups = [
    { title: 'conversations', kinds: CONVERSATIONS },
    ...RECORDINGS.map((kind) => ({ title: TITLES[kind] ?? kind, kinds: [kind] })),
  ];
  const rows = groups.flatMap(({ title, kinds }) =>
    peers.flatMap((peer) => {
      const own = results.filter((result) => result.peer === peer && kinds.includes(result.kind));
      return own.length === 0 ? [] : [[title, peer, ...cells(own), known(peaks.get(peer) ?? Number.NaN, 0)]];
    }),
  );
  const columns = ['missed', 'false alarm', 'confusion', 'JER', 'cpWER', 'count right', 'count off by'];
  const costs = ['time / audio', 'CPU s / audio s', 'peak MB'];
  return markdownTable(['', '', 'DER', ...columns, ...costs], rows);
}

function cells(own: readonly FileResult[]): string[] {
  const speech = sumOf(own, ({ errors }) => errors.speech);
  const share = (part: (errors: DiarizationErrors) => number) =>
    percent(sumOf(own, ({ errors }) => part(errors)) / speech);
  const worded = own.filter(({ errors }) => errors.words !== null);
  const wordErrors = sumOf(worded, ({ errors }) => errors.wordErrors ?? 0);
  const off = ({ errors }: FileResult) => Math.abs(errors.found - errors.known);
  const timed = own.filter(({ wallMs }) => !Number.isNaN(wallMs));
  const audioSec = sumOf(timed, ({ seconds }) => seconds);
  return [
    percent(errorRate(own)),
    share(({ missed }) => missed),
    share(({ falseAlarm }) => falseAlarm),
    share(({ confusion }) => confusion),
    percent(sumOf(own, ({ errors }) => errors.jaccard) / own.length),
    percent(wordErrors / sumOf(worded, ({ errors }) => errors.words ?? 0)),
    percent(own.filter((result) => off(result) === 0).length / own.length),
    (sumOf(own, off) / own.length).toFixed(2),
    known(sumOf(timed, ({ wallMs }) => wallMs) / 1000 / audioSec, 3),
    known(sumOf(timed, ({ cpuSec }) => cpuSec) / audioSec, 3),
  ];
}
