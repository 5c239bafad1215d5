/** A text is aligned with real weights. The times of a transcription with the same words say where they are. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { form, json } from '../http/harness.ts';
import { JFK, JFK_TEXT, MODEL, needsWeights, plain, type RealGateway, startRealGateway } from './gateway.ts';

interface TimedWord {
  word: string;
  start: number;
  end: number;
  probability: number;
}

let gateway: RealGateway;
const dir = mkdtempSync(join(tmpdir(), 'voxgate-alignment-test-'));
before(async () => {
  gateway = await startRealGateway();
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

async function words(path: string, file: Buffer, fields: Record<string, string>): Promise<TimedWord[]> {
  const body = form(file, { model: MODEL, language: 'en', ...fields });
  const response = await fetch(`${gateway.base}/v1/audio/${path}`, { method: 'POST', body });
  const answer = await json(response);
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer.words;
}

/** The clip three times, with 2 s of silence between them. */
function threeTimes(): Buffer {
  const file = join(dir, 'three.wav');
  const filter = 'aresample=16000,aformat=channel_layouts=mono,apad=pad_dur=2,aloop=loop=2:size=208000';
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', JFK, '-af', filter, '-ar', '16000', file]);
  return readFileSync(file);
}

function assertInOrder(aligned: TimedWord[]): void {
  let clock = 0;
  for (const { word, start, end } of aligned) {
    assert(start >= clock && end >= start, `${word} ${start} ${end}`);
    clock = start;
  }
}

test('aligned words have the times of a transcription with the same words', async (t) => {
  if (!needsWeights(t)) return;
  const clip = readFileSync(JFK);
  const said = await words('transcriptions', clip, {
    response_format: 'verbose_json',
    'timestamp_granularities[]': 'word',
  });
  const aligned = await words('alignments', clip, { text: JFK_TEXT });
  assert.equal(aligned.map(({ word }) => word).join(' '), JFK_TEXT);
  assert.deepEqual(plain(said.map(({ word }) => word).join(' ')), plain(JFK_TEXT));
  for (const [i, { word, start, end, probability }] of aligned.entries()) {
    const { start: from = 0, end: to = 0 } = said[i] ?? {};
    assert(
      Math.abs(start - from) <= 0.3 && Math.abs(end - to) <= 0.3,
      `${word} ${start} ${end}, ${from} ${to}`,
    );
    assert(probability > 0.05, `${word} ${probability}`);
  }
});

test('words that are not said keep the order, look doubtful and move no others', async (t) => {
  if (!needsWeights(t)) return;
  const clip = readFileSync(JFK);
  const right = await words('alignments', clip, { text: JFK_TEXT });
  const wrong = await words('alignments', clip, { text: JFK_TEXT.replace('ask not', 'banana not') });
  assertInOrder(wrong);
  const banana = wrong.find(({ word }) => word === 'banana');
  assert(banana && banana.probability < 0.2, JSON.stringify(banana));
  const last = wrong.slice(-8);
  for (const [i, { word, start }] of last.entries())
    assert(Math.abs(start - (right.slice(-8)[i]?.start ?? 0)) <= 0.3, `${word} ${start}`);
});

test('a text that is said several times is found each time, also around a passage that nobody says', async (t) => {
  if (!needsWeights(t)) return;
  const passage = Array.from({ length: 20 }, () => 'Nobody ever says this sentence in the recording.').join(
    ' ',
  );
  const text = `${JFK_TEXT} ${JFK_TEXT} ${passage} ${JFK_TEXT}`;
  const aligned = await words('alignments', threeTimes(), { text });
  assertInOrder(aligned);
  assert.equal(aligned.map(({ word }) => word).join(' '), text);
  const starts = aligned.filter(({ word }) => word === 'fellow').map(({ start }) => start);
  assert.equal(starts.length, 3);
  const [first = 0, second = 0, third = 0] = starts;
  assert(Math.abs(second - first - 13) < 0.5 && Math.abs(third - second - 13) < 0.5, String(starts));
  const unsaid = aligned.filter(({ word }) => word === 'Nobody');
  assert(
    unsaid.every(({ probability }) => probability < 0.2),
    JSON.stringify(unsaid),
  );
});
