/**
 * Measures the word error rate of the gateway and its peers on recorded speech in seven languages.
 *
 *   npm run bench -- accuracy [--forms json,timed --languages en,fr --peers voxgate,faster-whisper --most 20 --cached]
 *
 * The rates are told by language and by length for each form, in which all peers hear the same clips in turns, so that
 * the ratios of their times hold, too. Every clip in which the gateway differs from the best peer is listed in
 * build/accuracy/differences.tsv, and every text stands in build/accuracy/FORM.json. Settings are tuned with --tuning,
 * which takes the other half of the clips. With --cached the texts of peers are taken from earlier runs.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { JFK } from '../../test/wav.ts';
import type { ClipClass } from '../clips/clip-classes.ts';
import { fileClip } from '../clips/clips.ts';
import { GROUPS, JUDGING_GROUPS, promptsOf } from '../clips/prompt-groups.ts';
import { ROOT } from '../common/machine.ts';
import { CACHED, chosen, GATEWAY_MODEL, MOST, TUNING, URL_OPTION, WRITE } from '../common/options.ts';
import { findPlace } from '../common/page.ts';
import { measure } from '../compare/measurement.ts';
import { describeRun } from '../compare/report.ts';
import { PEERS } from '../peers/all.ts';
import { withCachedTexts } from '../peers/answer-cache.ts';
import type { StartPeer } from '../peers/peer.ts';
import { DIFFERENCE_COLUMNS, differenceLines } from './differences.ts';
import { startErrorRates } from './error-rate.ts';
import { FORMS, type Form } from './forms.ts';
import { accuracyTable, detectionTable, heardBy, OWN } from './report.ts';

const LANGUAGES = [...new Set(GROUPS.values())];
const DEFAULT_PEERS = [
  'voxgate',
  'faster-whisper',
  'faster-whisper-beam-5',
  'faster-whisper-batched',
  'whisper-server',
];
const PAGE = 'bench/results/accuracy.md';
const ARTIFACTS = join(ROOT, 'build/accuracy');
const THREADS = 2;

const { values: options } = parseArgs({
  options: {
    forms: { type: 'string', default: Object.keys(FORMS).join() },
    languages: { type: 'string', default: LANGUAGES.join() },
    peers: { type: 'string', default: DEFAULT_PEERS.join() },
    most: MOST,
    tuning: TUNING,
    cached: CACHED,
    /** Names a CTranslate2 Whisper directory; base from the package index when absent. */
    model: { type: 'string' },
    'gateway-model': GATEWAY_MODEL,
    url: URL_OPTION,
    write: WRITE,
  },
});

const forms = chosen('forms', options.forms, Object.keys(FORMS));
const languages = chosen('languages', options.languages, LANGUAGES);
const peers = chosen('peers', options.peers, Object.keys(PEERS)).map((id): [string, StartPeer] => {
  const start = PEERS[id] as StartPeer;
  // What the gateway hears changes with every build.
  return [id, id === OWN ? start : withCachedTexts(id, start, { read: options.cached })];
});
const places = new Map(options.write ? forms.map((id) => [id, findPlace(`accuracy-${id}`, PAGE)]) : []);
const peerOptions = {
  threads: THREADS,
  model: options.model,
  gatewayModel: options['gateway-model'],
  url: options.url,
};

const groups = [...GROUPS]
  .filter(([, language]) => languages.includes(language))
  .map(([group]) =>
    promptsOf(group)
      .filter((prompt) => prompt.tuning === options.tuning)
      .slice(0, Number(options.most)),
  );
const warmUp = fileClip(JFK, null);
await using rates = await startErrorRates();
mkdirSync(ARTIFACTS, { recursive: true });
const differences = [DIFFERENCE_COLUMNS.join('\t')];
for (const id of forms) {
  const form = FORMS[id] as Form;
  const clipClass = classOf(id, form);
  const load = loadavg()[0] ?? 0;
  const outcomes = await measure(clipClass, peers, peerOptions, warmUp);
  const heard = await heardBy(outcomes, rates);
  const report = [
    accuracyTable(form.title, JUDGING_GROUPS, heard),
    ...(form.detected === true ? [detectionTable(JUDGING_GROUPS, heard)] : []),
    describeRun({ clipClass, outcomes }, { threads: THREADS, load }),
  ].join('\n\n');
  process.stdout.write(`${report}\n\n`);
  places.get(id)?.write(report);
  writeFileSync(join(ARTIFACTS, `${id}.json`), `${JSON.stringify(heard, null, 1)}\n`);
  differences.push(...differenceLines(id, heard));
  writeFileSync(join(ARTIFACTS, 'differences.tsv'), `${differences.join('\n')}\n`);
}

function classOf(id: string, { title, clips, detected, vad, stream, timed }: Form): ClipClass {
  return {
    id,
    title,
    clips: groups
      .flatMap((prompts) => clips?.(prompts) ?? prompts)
      .map((prompt) => ({ ...prompt, language: detected ? 'auto' : prompt.spoken })),
    language: 'auto',
    spoken: 'en',
    rounds: 1,
    vad: vad ?? false,
    stream: stream ?? false,
    timed: timed ?? false,
    detected: detected !== undefined,
  };
}
