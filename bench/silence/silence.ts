/**
 * Counts the sounds without speech for which the gateway returns a text.
 *
 *   npm run bench -- silence [--languages auto,en --kinds music,noises --softer 30 --tuning --write]
 *
 * Every text stands in build/accuracy/silence.tsv.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { quieter } from '../clips/degraded-clips.ts';
import { ROOT } from '../common/machine.ts';
import { sumOf } from '../common/numbers.ts';
import { MOST, TUNING, URL_OPTION, WRITE } from '../common/options.ts';
import { findPlace, markdownTable } from '../common/page.ts';
import { startVoxgate } from '../peers/voxgate.ts';
import { soundClips } from './sound-clips.ts';

const ARTIFACTS = join(ROOT, 'build/accuracy');

const { values: options } = parseArgs({
  options: {
    languages: { type: 'string', default: 'auto,en,fr,ja' },
    /** Names kinds of formulas or packages; all when absent. */
    kinds: { type: 'string' },
    /** Decibels by which each sound is made softer. */
    softer: { type: 'string', default: '0' },
    most: MOST,
    tuning: TUNING,
    url: URL_OPTION,
    write: WRITE,
  },
});

const languages = options.languages.split(',');
const place = options.write ? findPlace('silence', 'docs/accuracy.md') : null;
const softer = Number(options.softer);
const clips = soundClips(options.kinds?.split(','))
  .filter(({ tuning }) => tuning === options.tuning)
  .map((clip) => (softer > 0 ? quieter(clip, softer) : clip));
const kinds = [...new Set(clips.map(({ kind }) => kind))];

await using gateway = await startVoxgate({
  threads: 2,
  gatewayModel: 'multilingual-base',
  url: options.url,
});
const texts = [['kind', 'sound', 'seconds', 'language', 'text'].join('\t')];
const rows: string[][] = [];
for (const kind of kinds) {
  const sounds = clips.filter((clip) => clip.kind === kind).slice(0, Number(options.most));
  const counts = languages.map(() => 0);
  for (const sound of sounds) {
    for (const [i, language] of languages.entries()) {
      const { text } = await gateway.transcribe({ audio: sound.audio, language });
      if (text === '') continue;
      counts[i] = (counts[i] ?? 0) + 1;
      texts.push([kind, sound.name, sound.seconds.toFixed(1), language, text].join('\t'));
    }
  }
  const minutes = sumOf(sounds, ({ seconds }) => seconds) / 60;
  rows.push([kind, String(sounds.length), minutes.toFixed(0), ...counts.map(String)]);
  process.stderr.write(`${rows.at(-1)?.join(' ')}\n`);
}
const columnSum = (column: number) => String(sumOf(rows, (row) => Number(row[column])));
const all = ['all', columnSum(1), columnSum(2), ...languages.map((_, i) => columnSum(i + 3))];
const columns = ['', 'sounds', 'minutes', ...languages.map((code) => (code === 'auto' ? 'detected' : code))];
const report = markdownTable(columns, [...rows, all]);
process.stdout.write(`${report}\n`);
place?.write(`${report}\n\n${gateway.version}.`);
mkdirSync(ARTIFACTS, { recursive: true });
writeFileSync(join(ARTIFACTS, 'silence.tsv'), `${texts.join('\n')}\n`);
