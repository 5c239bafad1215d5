/** A gateway whose ffmpeg is missing or cannot be limited says so to its operator, and to clients that need it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { makeTone } from '../audio-fixtures.ts';
import { form, json, post, startGateway, toneWav, until } from './harness.ts';
import { SCRIPTED, serve } from './served.ts';

const m4a = readFileSync(makeTone('needs.m4a', '-c:a', 'aac'));
/** A film in two languages. */
const film = () => {
  const tagged = ['-metadata:s:a:0', 'language=eng', '-metadata:s:a:1', 'language=fre'];
  return readFileSync(makeTone('film.mkv', '-map', '0:a', '-map', '0:a', ...tagged, '-c:a', 'aac'));
};
/** No system lets a process open this many files, and so none sets the limit. */
const impossible = { ffmpeg: { ...BUDGETS.ffmpeg, openFiles: 2 ** 31 } };

test('an ffmpeg that cannot be limited is not used, and the dashboard says so', async () => {
  const env = { PATH: process.env.PATH ?? '' };
  await using gateway = await startGateway({ env, budgets: impossible });
  const { error } = await json(await post(gateway, form(m4a)));
  assert.equal(error.code, 'unsupported_format');
  assert.match(error.message, /decoding mp4 needs ffmpeg, which this server does not have or may not use/);
  assert.equal((await post(gateway, form(toneWav(1)))).status, 200);
  const state = async ({ base }: { base: string }) => (await fetch(`${base}/admin/fragments/state`)).text();
  assert.match(await state(gateway), /Some audio cannot be read: .* cannot be limited here by the ulimit/);
  await using usual = await startGateway({ env });
  assert.equal((await post(usual, form(m4a))).status, 200);
  assert.doesNotMatch(await state(usual), /cannot be read/);
});

test('a gateway without ffmpeg says so in a warning at its start', async () => {
  await using served = await serve({ PATH: '/nonexistent' }, SCRIPTED);
  const warning = /warn.*m4a, mp4, .* are refused, because there is no ffmpeg in PATH/;
  await until('the warning', () => warning.test(served.log()), 20_000);
});

test('of a file with several audio tracks the answer says which one was heard', async () => {
  await using gateway = await startGateway({ env: { PATH: process.env.PATH ?? '' } });
  const hear = async (file: Buffer, fields: Record<string, string> = {}) =>
    json(await post(gateway, form(file, { response_format: 'verbose_json', ...fields })));
  const bytes = film();
  assert.equal((await hear(bytes)).track, 0);
  assert.equal((await hear(bytes, { language: 'French' })).track, 1);
  assert.equal((await hear(bytes, { language: 'fr', track: '0' })).track, 0);
  assert.equal('track' in (await hear(m4a)), false);
  const { error } = await hear(bytes, { track: '2' });
  assert.deepEqual([error.code, error.param], ['invalid_value', 'track']);
  assert.match(error.message, /"track" .*which has the tracks 0 to 1/);
});

test('of a damaged file the answer says what is missing, and a later chunk of a recording what it lacks', async () => {
  await using gateway = await startGateway({ env: { PATH: process.env.PATH ?? '' } });
  const hear = async (file: Buffer) =>
    json(await post(gateway, form(file, { response_format: 'verbose_json' })));
  const wave = toneWav(4);
  assert.equal('dropped' in (await hear(wave)), false);
  const cut = await hear(wave.subarray(0, wave.length / 2));
  const [missing] = cut.dropped.filter(({ reason }: { reason: string }) => reason === 'damaged');
  assert.ok(Math.abs(missing.start - 2) < 0.01 && Math.abs(missing.end - 4) < 0.01, JSON.stringify(cut));
  const webm = readFileSync(makeTone('live.webm', '-c:a', 'libopus', '-live', '1'));
  const chunk = webm.subarray(webm.indexOf('\x1f\x43\xb6\x75', undefined, 'latin1'));
  const { error } = await hear(chunk);
  assert.equal(error.code, 'unsupported_format');
  assert.match(error.message, /later chunk of a MediaRecorder\? .*send the recording whole/);
});
