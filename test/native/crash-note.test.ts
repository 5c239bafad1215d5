/** A process that ends in the middle of native work leaves a note of what it was doing. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, truncateSync } from 'node:fs';
import { test } from 'node:test';
import { parseCrashNote } from '../../src/crashes/crash-note.ts';
import { wav, wavHeader } from '../wav.ts';
import { chunkOptions, fakeModelFile, sine, temporaryFile } from './fixtures.ts';

const skip = process.platform !== 'linux' && 'crashes are noted on Linux only';
const addonUrl = new URL('../../src/engine/addon.ts', import.meta.url).href;

/** Runs a script in a process of its own, which notes crashes, and reads the note afterwards. */
function crash(body: string, model: string[] = ['segment 0 1 x', 'delay_ms 60000']) {
  const path = temporaryFile();
  const fake = { family: 'fake', path: fakeModelFile(...model), device: 'cpu', threads: 1 };
  const script = `
    import { loadNative } from ${JSON.stringify(addonUrl)};
    const native = loadNative();
    const note = ${JSON.stringify(path)};
    native.recordCrashes(note);
    const transcribe = async (onSegment) => {
      const model = await native.loadModel(${JSON.stringify(fake)});
      return model.transcribe(new Float32Array(100), ${JSON.stringify(chunkOptions)}, { onSegment });
    };
    ${body}`;
  const args = ['--import', 'tsx', '--input-type=module', '-e', script];
  const { status, signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
  return { status, signal, stderr, note: parseCrashNote(readFileSync(path)) };
}

const TRANSCRIBING = { place: 'transcribe: fake', requestId: null };

for (const [how, signal, message] of [
  ['assert', 'SIGABRT', /GGML_ASSERT\(crash\.how != "assert"\) failed/],
  ['terminate', 'SIGABRT', /^std::terminate: thrown$/],
  ['memory', 'SIGSEGV', /^$/],
] as const)
  test(`a native call that ends the process (${how}) is named in the note, with the request`, {
    skip,
  }, () => {
    const ended = crash("native.noteRequest('asr one'); await transcribe();", [`crash ${how}`]);
    assert.deepEqual([ended.status, ended.signal], [null, signal], ended.stderr);
    const { cause, holder, calls } = ended.note;
    assert.deepEqual(
      { cause, holder, calls },
      { cause: signal, holder: 'asr one', calls: [{ ...TRANSCRIBING, failed: true }] },
    );
    assert.match(ended.note.message, message);
    for (const line of ended.note.message.split('\n'))
      assert(ended.stderr.includes(line), 'the log has it too');
  });

for (const signal of ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV'] as const)
  test(`${signal} ends the process by ${signal}, and the note names the calls that ran`, { skip }, () => {
    const ended = crash(`transcribe(() => process.kill(process.pid, '${signal}'));`);
    assert.deepEqual([ended.status, ended.signal], [null, signal], ended.stderr);
    assert.equal(ended.note.cause, signal);
    assert.deepEqual(ended.note.calls, [{ ...TRANSCRIBING, failed: false }]);
  });

test('SIGKILL leaves the note as it was: the request and the calls', { skip }, () => {
  const ended = crash(
    "native.noteRequest('asr two'); transcribe(() => process.kill(process.pid, 'SIGKILL'));",
  );
  assert.equal(ended.signal, 'SIGKILL');
  const calls = [{ ...TRANSCRIBING, failed: false }];
  assert.deepEqual(ended.note, { cause: null, message: '', holder: 'asr two', calls });
});

test('an exception that nothing catches ends the process as it does without the note', { skip }, () => {
  const ended = crash("throw new Error('over');");
  assert.deepEqual([ended.status, ended.signal], [1, null]);
  assert.match(ended.stderr, /Error: over/);
});

test('WebAssembly that leaves its memory is still an exception, and no crash', { skip }, () => {
  // (module (memory 1) (func (export "f") (result i32) (i32.load (i32.const 0x7fffffff))))
  const bytes =
    '0061736d010000000105016000017f03020100050301000107050101660000 0a0d010b0041ffffffff072802000b'.replace(
      /\s/g,
      '',
    );
  const ended = crash(`
    const { instance } = await WebAssembly.instantiate(Buffer.from('${bytes}', 'hex'));
    let caught = 0;
    for (let times = 0; times < 3; times++) try { instance.exports.f(); } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) caught += 1;
    }
    process.exitCode = 40 + caught;`);
  assert.equal(ended.status, 43, ended.stderr);
  assert.equal(ended.note.cause, null);
});

test('a call for audio names the request that the audio belongs to', { skip }, () => {
  const [seconds, rate] = [1000, 44_100];
  const silence = temporaryFile(wavHeader(seconds * rate * 2, rate));
  truncateSync(silence, 44 + seconds * rate * 2);
  const ended = crash(`
    import { readFileSync } from 'node:fs';
    native.noteRequest('tts other');
    const file = await native.openAudio('${silence}', { requestId: 'three' });
    const block = file.read(${seconds * 16_000}, { requestId: 'three' });
    const end = Date.now() + 30_000;
    while (Date.now() < end && !readFileSync(note).includes('decode audio'));
    process.kill(process.pid, 'SIGKILL');`);
  assert.equal(ended.note.holder, 'tts other', ended.stderr);
  assert.deepEqual(ended.note.calls, [{ place: 'decode audio: wav', requestId: 'three', failed: false }]);
});

test('calls that have ended are not in the note', { skip }, () => {
  const sound = temporaryFile(wav(sine(440, 1)));
  const ended = crash(
    `native.noteRequest('tts other');
     const file = await native.openAudio('${sound}', { requestId: 'three' });
     await file.read(100, { requestId: 'three' });
     await transcribe();
     native.noteRequest('');
     process.kill(process.pid, 'SIGKILL');`,
    ['segment 0 1 x'],
  );
  assert.deepEqual(ended.note, { cause: null, message: '', holder: null, calls: [] });
});

test('texts that are too long are cut, and a note without a folder is an error', { skip }, () => {
  const ended = crash("native.noteRequest('asr ' + 'x'.repeat(1000)); transcribe(() => process.abort());");
  assert.equal(ended.note.holder, `asr ${'x'.repeat(251)}`);
  assert.equal(ended.note.cause, 'SIGABRT');
  const refused = crash(`
    try { native.recordCrashes('/nowhere/note'); } catch (error) { process.exitCode = error.code === 'load_failed' ? 44 : 1; }`);
  assert.equal(refused.status, 44, refused.stderr);
});
