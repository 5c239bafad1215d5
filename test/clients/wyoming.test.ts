/**
 * The reference package of Wyoming, by which Home Assistant asks, gets transcripts of real weights, and speech of a real
 * speech server.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startGateway } from '../http/harness.ts';
import { JFK, JFK_TEXT, MODEL, needsWeights, plain, startRealGateway } from '../model/gateway.ts';
import { speechLacks, startSpeech } from '../upstreams/start.ts';
import { pythonBin } from './python.ts';

test('the reference package of Wyoming gets a description and transcripts, whatever its audio is like', async (t) => {
  if (!needsWeights(t)) return;
  const bin = await pythonBin();
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-wyoming-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  await using gateway = await startRealGateway({}, { SVC_WYOMING_PORT: '0' });
  const script = new URL('wyoming_client.py', import.meta.url).pathname;
  for (const format of [
    ['-ar', '16000', '-ac', '1', '-c:a', 'pcm_s16le'],
    ['-ar', '44100', '-ac', '2', '-c:a', 'pcm_s16le'],
    ['-ar', '22050', '-ac', '1', '-c:a', 'pcm_u8'],
  ]) {
    const wav = join(dir, `${format[1]}.wav`);
    execFileSync('ffmpeg', ['-v', 'error', '-i', JFK, ...format, '-bitexact', wav]);
    const { stdout } = await promisify(execFile)(
      join(bin, 'python'),
      [script, String(gateway.wyomingPort), MODEL, wav],
      { timeout: 300_000 },
    );
    const [info, detected, named, refused, silent] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual([info.name, info.streams, info.pong], ['voxgate', true, 'there?']);
    assert(info.models.includes(MODEL) && info.english, JSON.stringify(info));
    for (const heard of [detected, named]) {
      assert.deepEqual([heard.first, heard.last], ['transcript-start', 'transcript-stop'], String(format));
      assert.deepEqual([heard.languages, heard.errors], [['en'], []]);
      const text = plain(heard.texts.join('|'));
      // 8 bits are noisy, and 44.1 kHz is filtered, so a word may be another one.
      if (format[1] === '16000') assert.equal(text, plain(JFK_TEXT));
      else assert.match(text, /ask not what your country can do for you ask what you can do/, String(format));
      assert.notEqual(heard.chunks, '');
    }
    assert.match(String(refused.errors), /^(unknown_model|closed)$/);
    assert.deepEqual(silent, ['transcript-start', 'transcript', 'transcript-stop', true]);
  }
});

test('the reference package of Wyoming has texts spoken, whole and in pieces', async (t) => {
  const lacks = speechLacks();
  if (lacks !== null) return t.skip(lacks);
  const bin = await pythonBin();
  await using speech = await startSpeech();
  const env = { SVC_WYOMING_PORT: '0', SVC_TTS_UPSTREAM_URL: speech.base };
  await using gateway = await startGateway({ env });
  const script = new URL('wyoming_speech.py', import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(
    join(bin, 'python'),
    [script, String(gateway.wyomingPort), 'nova'],
    { timeout: 120_000 },
  );
  const [info, whole, pieces] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual([info.name, info.streams, info.english], ['voxgate', true, true]);
  assert(info.voices.includes('nova'), JSON.stringify(info));
  const spoken = ['audio-start', 'audio-stop'];
  assert.deepEqual([whole.types, whole.errors], [spoken, []]);
  assert.deepEqual([pieces.types, pieces.errors], [[...spoken, ...spoken, 'synthesize-stopped'], []]);
  for (const { format, bytes, loudest } of [whole, pieces]) {
    const [rate, width, channels] = format;
    assert.deepEqual([width, channels], [2, 1]);
    assert(bytes > 0.5 * rate * width, `${bytes} bytes are half a second of speech at least`);
    assert(loudest > 1000, `${loudest} is no silence`);
  }
});
