/** Bazarr's own requests, byte for byte, are answered with what it reads. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { heard, startGateway, toneWav } from '../http/harness.ts';
import { pythonBin } from './python.ts';

const CLIENT = new URL('bazarr_client.py', import.meta.url).pathname;

/** What Bazarr prints for its three requests to a gateway with these keys. */
async function askAsBazarr(t: TestContext, keys: string, endpointOf: (base: string) => string) {
  const bin = await pythonBin();
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-bazarr-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const audio = join(dir, 'audio.s16le');
  writeFileSync(audio, toneWav(2).subarray(44));
  await using gateway = await startGateway({
    env: { SVC_API_KEY: keys },
    transcribe: async (_samples, { translate }) => heard(translate ? ' In English.' : ' Hello there.', 500),
  });
  const { stdout } = await promisify(execFile)(join(bin, 'python'), [
    CLIENT,
    endpointOf(gateway.base),
    audio,
  ]);
  return { stdout, exchanges: gateway.exchanges };
}

for (const [how, keys, endpointOf] of [
  ['', '', (base: string) => base],
  [
    ', also with the key in its endpoint',
    'a/key:1',
    (base: string) => base.replace('//', '//bazarr:a%2Fkey%3A1@'),
  ],
] as const)
  test(`Bazarr detects the language of a film and gets its subtitles${how}`, async (t) => {
    const { stdout, exchanges } = await askAsBazarr(t, keys, endpointOf);
    const cue = (text: string) => `1\n00:00:00,000 --> 00:00:01,000\n${text}\n`;
    const [language, ...cues] = stdout.split(/^(?=1\n)/m);
    assert.equal(language, 'en english\n');
    assert.deepEqual(
      cues.map((one) => one.trim()),
      [cue('Hello there.').trim(), cue('In English.').trim()],
    );
    assert.deepEqual(
      exchanges.map(({ path, status, userAgent }) => [path, status, userAgent]),
      ['/detect-language', '/asr', '/asr'].map((path) => [path, 200, 'Subliminal/2.1']),
    );
  });
