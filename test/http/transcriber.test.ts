/** What transcribes in one process, without a server: its answers, and what it loads and stores for them. */
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import { appendFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Question } from '../../src/cli/question.ts';
import { askFor } from '../../src/cli/transcribe-client.ts';
import { startTranscriber } from '../../src/cli/transcriber.ts';
import { readConfig } from '../../src/config/config.ts';
import { chooseDevice } from '../../src/engine/device.ts';
import { createLog } from '../../src/observability/log.ts';
import { joinWavs } from '../wav.ts';
import { heard, type Script, startGateway, toneWav, until } from './harness.ts';
import { scriptedEngine, scriptedStore } from './scripted-engine.ts';

const request = (model?: string) => ({ model, language: undefined, translate: false });

/** @return the weights that were loaded so far, and those that were asked for */
async function started(t: TestContext, script: Script, coming?: ReturnType<typeof request>) {
  const loads: string[] = [];
  const wanted: string[] = [];
  const tmp = mkdtempSync(join(tmpdir(), 'voxgate-transcriber-test-'));
  const { config } = readConfig({ SVC_TMP_DIR: join(tmp, 'uploads'), ...script.env });
  const engine = scriptedEngine(script, { load: (name) => loads.push(name) });
  const store = scriptedStore({ ...script, ensure: async (id) => void wanted.push(id) });
  const device = chooseDevice(config.device, engine.info.devices);
  const parts = { engine, device, store, log: createLog('error') };
  const transcriber = await startTranscriber(config, parts, coming);
  t.after(async () => {
    await transcriber[Symbol.asyncDispose]();
    rmSync(tmp, { recursive: true });
  });
  return { transcriber, loads, wanted, tmp };
}

test('the model of the first request is loaded while the other modules load', async (t) => {
  const usual = await started(t, {}, request());
  assert.deepEqual(usual.loads[0], 'multilingual-base');
  await until('both are loaded', () => usual.loads.length === 2);
  assert.deepEqual(usual.loads, ['multilingual-base', 'voice-activity']);
  const small = { installed: ['multilingual-base', 'multilingual-small', 'voice-activity'] };
  const named = await started(t, small, request('multilingual-small'));
  assert.deepEqual(named.loads[0], 'multilingual-small');
});

test('nothing is loaded or fetched before a request that needs a download, or that names no model', async (t) => {
  const scripts: [Script, ReturnType<typeof request>?][] = [
    [{}],
    [{}, request('multilingual-small')],
    [{}, request('nonsense')],
    [{ installed: ['multilingual-base'] }, request()],
  ];
  for (const [script, coming] of scripts) {
    const { loads, wanted } = await started(t, script, coming);
    assert.deepEqual({ loads, wanted }, { loads: [], wanted: [] });
  }
});

const SPEECH = joinWavs(toneWav(2), toneWav(4, 0), toneWav(2));
const { signal } = new AbortController();
setMaxListeners(0, signal);

/** The body, or the error in the members that programs look at. */
const outcome = (asked: Promise<string>) =>
  asked.catch(({ name, status, kind, code, message }) => ({ name, status, kind, code, message }));

test('it answers as a gateway does, whatever is asked', async (t) => {
  const script = { transcribe: async () => heard(' One. Two.') };
  const { transcriber, tmp } = await started(t, script);
  await using gateway = await startGateway(script);
  const [sound, noSound, empty] = ['talk.wav', 'talk.mp3', 'empty.wav'].map((name) => join(tmp, name));
  writeFileSync(sound as string, SPEECH);
  writeFileSync(noSound as string, 'no sound at all');
  writeFileSync(empty as string, '');
  const reference = `data:audio/wav;base64,${toneWav(3).toString('base64')}`;
  const fields: Question['fields'][] = [
    {},
    ...['json', 'text', 'srt', 'vtt', 'verbose_json'].map((format) => ({ response_format: format })),
    { response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'] },
    { model: 'nonsense' },
    { language: 'de', prompt: 'Names' },
    { temperature: '7' },
    { known_speaker_names: ['Ann'], known_speaker_references: [reference] },
    { known_speaker_names: ['Ann'], known_speaker_references: ['data:audio/wav;base64,AAAA'] },
    { languages: 'de', unknown: 'x', 'keywords[]': ['Voxgate'] },
  ];
  for (const audio of [sound, noSound, empty, new Blob([SPEECH]), new Blob([]), new Blob(['no sound'])])
    for (const asked of audio === sound ? fields : [{}]) {
      const question = { audio: audio as string | Blob, fields: asked, signal };
      const here = await outcome(transcriber.ask(question));
      const there = await outcome(askFor({ ...question, base: gateway.base, key: undefined }));
      assert.deepEqual(here, there, JSON.stringify(asked).slice(0, 200));
    }
});

test('bytes are stored while they are heard, within the limit of an upload; a file is heard where it is', async (t) => {
  const uploads = (dir: string) => {
    const folder = join(dir, 'uploads');
    return existsSync(folder) ? readdirSync(folder, { recursive: true }).length : 0;
  };
  const seen: number[] = [];
  const { transcriber, tmp } = await started(t, {
    env: { SVC_MAX_UPLOAD_MB: '1' },
    async transcribe() {
      seen.push(uploads(tmp));
      return heard(' One.');
    },
  });
  const path = join(tmp, 'talk.wav');
  writeFileSync(path, toneWav(60)); // more than 1 MB
  const fields = { response_format: 'text' };
  await transcriber.ask({ audio: path, fields, signal });
  assert.deepEqual([...new Set(seen.splice(0))], [0]);
  await transcriber.ask({ audio: new Blob([toneWav(1)]), fields, signal });
  assert.deepEqual(seen, [2]); // a folder and the file
  assert.equal(uploads(tmp), 1);
  const large = transcriber.ask({ audio: new Blob([toneWav(60)]), fields, signal });
  await assert.rejects(large, { name: 'RequestError', status: 413 });
});

test('a file that changes while it is heard has no text, and one that vanishes or fails says why', async (t) => {
  let change: () => void = () => undefined;
  const script = async () => {
    change();
    return heard(' One.');
  };
  const { transcriber, tmp } = await started(t, { transcribe: script });
  const audio = join(tmp, 'talk.wav');
  writeFileSync(audio, toneWav(1));
  const ask = () => transcriber.ask({ audio, fields: {}, signal });
  change = () => appendFileSync(audio, 'more');
  await assert.rejects(ask(), { message: `${audio} has changed while it was read` });
  change = () => {
    throw new Error('the engine fails');
  };
  await assert.rejects(ask(), { name: 'RequestError', status: 500 });
  change = () => undefined;
  assert.equal(JSON.parse(await ask()).text, 'One.');
  rmSync(audio);
  await assert.rejects(ask(), { code: 'ENOENT' });
});

test('questions at once are answered one after the other, and an abort gives its reason', async (t) => {
  let running = 0;
  let most = 0;
  const { transcriber, tmp } = await started(t, {
    async transcribe(_samples, _options, hooks) {
      running += 1;
      most = Math.max(most, running);
      await sleep(5, undefined, { signal: hooks.signal as AbortSignal }).catch(() => undefined);
      running -= 1;
      return heard(' One.');
    },
  });
  const audio = join(tmp, 'talk.wav');
  writeFileSync(audio, toneWav(1));
  const fields = { response_format: 'text' };
  const leaving = new AbortController();
  const questions = Array.from({ length: 40 }, () => transcriber.ask({ audio, fields, signal }));
  const last = transcriber.ask({ audio, fields, signal: leaving.signal });
  leaving.abort(new Error('enough'));
  await assert.rejects(last, { message: 'enough' });
  assert.deepEqual(new Set((await Promise.all(questions)).map((text) => text.trim())), new Set(['One.']));
  assert.equal(most, 1);
});
