/** Of several audio tracks the one is heard that is meant, and the source says which. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type OpenAudioOptions, openAudio } from '../../src/audio/open.ts';
import {
  collect,
  createFakeEngine,
  folder,
  makeTone,
  measure,
  openHandles,
  RATE,
  requireFfmpeg,
  runFfmpeg,
  untilClosed,
  write,
} from '../audio-fixtures.ts';
import { wav } from '../wav.ts';

const options: OpenAudioOptions = {
  engine: createFakeEngine(),
  ffmpeg: await requireFfmpeg(),
  maxAudioSec: 3600,
  blockSamples: 512 * 20,
};
const baseline = openHandles();
after(() => untilClosed(baseline));

/** Each track has a tone by which it is known, or is silent, or is silent for most of the time. */
const TONES = [300, 500, 700, 900];
const LATE = "volume=enable='lt(t,3.5)':volume=0";

/** A file of 4 s with these tracks; `%` stands for the number of the track in what ffmpeg is told about it. */
function makeFile(
  name: string,
  tracks: { sound?: string; about?: string[] }[],
  ...encoding: string[]
): string {
  const path = join(folder, name);
  const sounds = tracks.map(({ sound = 'anull' }, i) => `sine=f=${TONES[i]}:r=48000:d=4,${sound}`);
  runFfmpeg(
    ...sounds.flatMap((sound) => ['-f', 'lavfi', '-i', sound]),
    ...tracks.flatMap((_, i) => ['-map', `${i}:a`]),
    ...tracks.flatMap(({ about = [] }, i) => about.map((word) => word.replace('%', String(i)))),
    ...encoding,
    path,
  );
  return path;
}

const flags = (flag: string) => ['-disposition:a:%', flag];
const tag = (language: string) => ['-metadata:s:a:%', `language=${language}`];
const SILENT = { sound: 'volume=0' };
const MKV = ['-c:a', 'aac', '-default_mode', 'passthrough'];

/** The track that the sound is of and the one that the source names. */
async function heard(path: string, more: Partial<OpenAudioOptions> = {}) {
  const { samples, track } = await collect(path, { ...options, ...more });
  const { hertz } = measure(samples.subarray(3.4 * RATE));
  return [TONES.findIndex((tone) => Math.abs(tone - hertz) < 20), track];
}

test('the default track is heard, wherever it stands', async () => {
  for (const [name, ...encoding] of [['d.mkv', ...MKV], ['d.mp4'], ['d.mov', '-c:a', 'pcm_s16le']] as const) {
    const path = makeFile(
      name,
      [{ about: flags('comment') }, { about: flags('default') }, { about: flags('0') }],
      ...encoding,
    );
    assert.deepEqual(await heard(path), [1, 1], name);
  }
  const none = [{ about: flags('comment') }, { about: flags('0') }];
  assert.deepEqual(await heard(makeFile('none.mkv', none, ...MKV)), [1, 1], 'rather no commentary');
  assert.deepEqual(await heard(makeFile('first.ts', [{}, {}], '-c:a', 'aac')), [0, 0]);
  assert.deepEqual(await heard(makeFile('one.m4a', [{}])), [0, undefined]);
});

test('a track that is silent or cannot be decoded is passed over where another is good', async () => {
  for (const [name, ...encoding] of [['s.mp4'], ['s.mkv', ...MKV], ['s.ts', '-c:a', 'aac']] as const) {
    assert.deepEqual(await heard(makeFile(name, [SILENT, {}], ...encoding)), [1, 1], name);
    const late = makeFile(`late-${name}`, [{ sound: LATE }, {}], ...encoding);
    assert.deepEqual(await heard(late), [0, 0], `${name}: silence at the beginning is no silent track`);
    const silent = makeFile(`all-${name}`, [SILENT, SILENT], ...encoding);
    assert.equal((await heard(silent))[1], 0, name);
  }
  const unknown = readFileSync(makeFile('whole.mp4', [{}, {}]));
  for (const [box, other] of [
    ['mp4a', 'apac'],
    ['esds', 'dapa'],
  ] as const)
    unknown.write(other, unknown.indexOf(box), 'latin1');
  assert.deepEqual(await heard(write('apac.mp4', unknown)), [1, 1]);
});

test('the track in the language that was asked for is heard before one in another', async () => {
  const french = { isLanguage: (language: string) => language.startsWith('fr') };
  const tagged = (...languages: string[]) =>
    languages.map((language) => ({ about: [...tag(language), ...flags('0')] }));
  const first = (tracks: { about: string[] }[]) =>
    tracks.map(({ about }, i) => ({ about: [...about, ...flags(i === 0 ? 'default' : '0')] }));
  for (const [name, ...encoding] of [['l.mkv', ...MKV], ['l.mp4']] as const) {
    const path = makeFile(name, tagged('eng', 'fre', 'ger'), ...encoding);
    assert.deepEqual(
      [await heard(path), await heard(path, french)],
      [
        [0, 0],
        [1, 1],
      ],
      name,
    );
    const flagged = makeFile(`flagged-${name}`, first(tagged('eng', 'fre')), ...encoding);
    assert.deepEqual(
      [await heard(flagged), await heard(flagged, french)],
      [
        [0, 0],
        [1, 1],
      ],
      name,
    );
    const untold = makeFile(`untold-${name}`, first(tagged('und', 'fre')), ...encoding);
    assert.deepEqual(await heard(untold, french), [0, 0], `${name}: the default one may be in it`);
  }
});

test('the track that the request names is heard, and one that the file lacks is refused', async () => {
  const path = makeFile('named.mkv', [{ about: flags('default') }, {}, SILENT], ...MKV);
  assert.deepEqual(await heard(path, { track: 1 }), [1, 1]);
  assert.equal((await heard(path, { track: 2 }))[1], 2);
  for (const [file, has] of [
    [path, 'the tracks 0 to 2'],
    [makeTone('single.m4a', '-c:a', 'aac'), 'only track 0'],
    [write('single.wav', wav(new Int16Array(RATE))), 'only track 0'],
  ] as const) {
    const message = new RegExp(`Expected an audio track of the file, which has ${has}`);
    const refused = { code: 'invalid_value', status: 400, param: 'track', message };
    await assert.rejects(openAudio(file, { ...options, track: 3 }), refused);
  }
  assert.deepEqual(await heard(makeTone('zero.m4a', '-af', 'volume=0'), { track: 0 }), [-1, undefined]);
});

test('one channel is heard of the track that is heard, also where the other track is mono', async () => {
  const stereo = { about: flags('default'), sound: 'pan=stereo|c0=c0|c1=0*c0' };
  const path = makeFile('channel.mkv', [{ about: flags('0') }, stereo], ...MKV);
  assert.deepEqual(await heard(path, { channel: 0 }), [1, 1]);
  assert.deepEqual(await heard(path, { channel: 1 }), [-1, 1], 'the channel is silent, but not the track');
  const refused = { code: 'invalid_value', param: 'channel', message: /two channels for it, and this has 1/ };
  await assert.rejects(
    openAudio(path, { ...options, track: 0, channel: 0, channelField: 'channel' }),
    refused,
  );
});
