/** The system refuses threads, as it does at a limit of processes: calls fail, and the process lives. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { compilePreloadLibrary } from '../preload-library.ts';
import { wav } from '../wav.ts';
import { chunkOptions, fakeModelFile, sine, temporaryFile } from './fixtures.ts';

const url = (path: string) => new URL(`../../src/${path}`, import.meta.url).href;
const data = (path: string) => new URL(`./data/${path}`, import.meta.url).pathname;
const small = { sensevoice: data('sensevoice/random/model.gguf'), parakeet: data('parakeet-script.bin') };
const whisper = process.env.VOXGATE_TEST_MODEL ?? '';

const { path: library, skip } = compilePreloadLibrary(
  new URL('./refuse-threads.c', import.meta.url),
  dirname(temporaryFile()),
);

/**
 * Runs `body` in a process of its own, where `allow(n)` lets n more threads start and `outcome(promise)` is `ok` or the
 * code of the error. Returns the lines that it printed.
 */
function underRefusal(body: string): string[] {
  const allowed = temporaryFile(Buffer.alloc(4, 0xff));
  const script = `
    import { writeFileSync } from 'node:fs';
    import { loadNative } from '${url('engine/addon.ts')}';
    import { openAudio } from '${url('audio/open.ts')}';
    import { BUDGETS } from '${url('limits/budgets.ts')}';
    const native = loadNative();
    const left = Buffer.alloc(4);
    const allow = (threads) => {
      left.writeInt32LE(threads);
      writeFileSync('${allowed}', left, { flag: 'r+' });
    };
    const outcome = (promise) => promise.then(() => 'ok', (error) => error.code);
    const load = (family, path, threads = 1) => native.loadModel({ family, path, device: 'cpu', threads });
    const options = ${JSON.stringify(chunkOptions)};
    const speech = Float32Array.from({ length: 32_000 }, (_, i) => 0.1 * Math.sin(i / 7));
    await outcome(openAudio('/dev/null', { engine: native, ffmpeg: null, maxAudioSec: 1 }));
    ${body}`;
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script],
    {
      encoding: 'utf8',
      timeout: 60_000,
      env: { ...process.env, LD_PRELOAD: library, VOXGATE_ALLOWED: allowed },
    },
  );
  assert.equal(status, 0, `${signal ?? ''} ${stdout} ${stderr}`);
  return stdout.trimEnd().split('\n');
}

const model = fakeModelFile('segment 0 1 x');
const sound = temporaryFile(wav(sine(440, 1)));

test('each call that needs a thread is out_of_memory without one, and works with one again', { skip }, () => {
  const printed = underRefusal(`
    const calls = [
      () => load('fake', '${model}'),
      () => native.loadVoiceActivity({ path: '${sound}' }),
      () => native.openAudio('${sound}', 'wav'),
      () => native.quantize({ source: '${sound}', target: '/nowhere', type: 'q8_0' }),
    ];
    for (const allowed of [0, -1]) {
      allow(allowed);
      for (const call of calls) console.log(await outcome(call()));
    }
    const loaded = await load('fake', '${model}');
    console.log((await loaded.transcribe(speech, options)).length);`);
  const refused = Array(4).fill('out_of_memory');
  assert.deepEqual(printed, [...refused, 'ok', 'load_failed', 'ok', 'load_failed', '1']);
});

test('a model that has its thread goes on, and an audio file needs none of its own', { skip }, () => {
  const printed = underRefusal(`
    const loaded = await load('fake', '${model}');
    const file = await native.openAudio('${sound}', 'wav');
    allow(0);
    console.log((await loaded.transcribe(speech, options)).length);
    console.log((await file.read(100)).length);
    console.log(await outcome(native.openAudio('${sound}', 'wav')));
    console.log(await outcome(load('fake', '${model}')));
    await loaded.close();`);
  assert.deepEqual(printed, ['1', '100', 'ok', 'out_of_memory']);
});

for (const [family, path] of Object.entries(small)) {
  test(`${family} is not loaded without its helper threads`, { skip }, () => {
    const printed = underRefusal(`
      for (const threads of [1, 2, 3, 4, -1]) {
        allow(threads);
        console.log(await outcome(load('${family}', '${path}', 4)));
      }`);
    assert.deepEqual(printed, [...Array(4).fill('out_of_memory'), 'ok']);
  });
}

test('SenseVoice keeps the helper threads it has', { skip }, () => {
  const printed = underRefusal(`
    const loaded = await load('sensevoice', '${small.sensevoice}', 4);
    const language = loaded.info.languages[0] ?? '';
    allow(0);
    for (let i = 0; i < 3; i += 1)
      console.log(await outcome(loaded.transcribe(speech, { ...options, language })));`);
  assert.deepEqual(printed, ['ok', 'ok', 'ok']);
});

test('an ffmpeg that cannot be started is out_of_memory', { skip }, () => {
  const printed = underRefusal(`
    const ffmpeg = { path: '/bin/false', version: '', limits: BUDGETS.ffmpeg };
    const opened = () => openAudio('${temporaryFile(Buffer.from('\0\0\0\x10ftypM4A \0\0\0\0'))}', { engine: native, ffmpeg, maxAudioSec: 1 });
    allow(0);
    console.log(await outcome(opened()));
    allow(-1);
    console.log(await outcome(opened()));`);
  assert.deepEqual(printed, ['out_of_memory', 'undecodable_audio']);
});

const noWeights = !existsSync(whisper) && 'VOXGATE_TEST_MODEL names no file';
test('Whisper goes on with the lanes it has', { skip: skip || noWeights }, () => {
  const printed = underRefusal(`
    const model = await load('whisper', '${whisper}', 4);
    const warm = { ...options, audioContext: 320, maxTokens: 8, temperature: 0.8 };
    console.log(model.info.lanes > 1);
    allow(0);
    console.log((await model.lane(1)) === (await model.lane(0)));
    console.log(await outcome(model.transcribe(speech, warm)));
    allow(-1);
    const lane = await model.lane(1);
    console.log(lane !== (await model.lane(0)));
    console.log(await outcome(Promise.all([model.transcribe(speech, warm), lane.transcribe(speech, warm)])));
    await model.close();`);
  assert.deepEqual(printed, ['true', 'true', 'ok', 'true', 'ok']);
});
