/**
 * Models run on a device whose memory is not the process's: on Mesa's software device, through ggml's Vulkan library.
 * They give the tokens that they give on the CPU, and a device that is full, lost or absent costs speed and no answer.
 */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { ChunkOptions, DecodedSegment } from '../../src/engine/types.ts';
import { form, json, toneWav } from '../http/harness.ts';
import { serve } from '../http/served.ts';
import { inProcess } from '../native/addon-folder.ts';
import { chunkOptions } from '../native/fixtures.ts';
import { sweep, vulkanWorld } from './vulkan-world.ts';

const found = await vulkanWorld();
const skip = typeof found === 'string' ? found : false;
const world = typeof found === 'string' ? null : found;
after(() => world?.remove());
const must = () => world ?? assert.fail('skipped');

const FAMILIES = ['whisper', 'parakeet', 'sensevoice'] as const;
type Family = (typeof FAMILIES)[number];

/** The environment is read when the device is first used, and each test file is a process. */
Object.assign(process.env, world?.env);
const engine = world && loadNative(join(world.addon, 'voxgate.node'), { gpus: true });
const load = (family: Family, device: string) => {
  const path = must().weights[family];
  return (engine ?? assert.fail('skipped')).loadModel({ family, path, device, threads: 2 });
};

/**
 * What each family is asked for. Whisper's random weights end no text by themselves, and write times at random.
 */
const ASKED: Record<Family, ChunkOptions[]> = {
  whisper: [
    { ...chunkOptions, audioContext: 300, maxTokens: 12, times: false },
    { ...chunkOptions, audioContext: 512, maxTokens: 8, times: false, beams: 3 },
    { ...chunkOptions, audioContext: 300, maxTokens: 8, times: false, prompt: 'w1 w2 w3' },
    { ...chunkOptions, audioContext: 300, maxTokens: 8, times: false, words: true },
  ],
  parakeet: [{ ...chunkOptions, words: true }],
  sensevoice: [
    { ...chunkOptions, language: '', words: true },
    { ...chunkOptions, language: 'ko', words: true, normalizeText: false },
  ],
};
type Tokens = DecodedSegment['tokens'];
const tokensOf = (segments: DecodedSegment[]): Tokens => segments.flatMap(({ tokens }) => tokens);

/** Of two tokens that are as likely either may be written. Their log probabilities differ by less. */
const TIE = 1e-3;
const logprobOf = (tokens: Tokens) => tokens.reduce((sum, { logprob }) => sum + logprob, 0);

/**
 * Tokens are the same up to a tie, behind which Whisper and Parakeet write something else. SenseVoice writes each token
 * without regard to the others. A beam search chooses among whole texts.
 */
function assertSameTokens(
  family: Family,
  { beams = 1 }: ChunkOptions,
  given: Tokens,
  expected: Tokens,
): void {
  for (const [i, token] of given.entries()) {
    const { id, logprob = Number.NaN, startMs, endMs } = expected[i] ?? {};
    const said = `token ${i}: ${token.id} (${token.logprob}) for ${id} (${logprob})`;
    if (token.id !== id && beams > 1) {
      const difference = logprobOf(given) - logprobOf(expected);
      assert(Math.abs(difference) < TIE * given.length, `${said}; ${difference} in all`);
      return;
    }
    assert(Math.abs(token.logprob - logprob) < (token.id === id ? 0.05 : TIE), said);
    if (token.id !== id && family !== 'sensevoice') return;
    if (family !== 'whisper') assert.deepEqual([token.startMs, token.endMs], [startMs, endMs]);
  }
  assert.equal(given.length, expected.length);
}

for (const family of FAMILIES) {
  test(`${family} gives on a device the tokens of the CPU`, { skip }, async () => {
    const onCpu = await load(family, 'cpu');
    const onDevice = await load(family, 'vulkan');
    const bytes = statSync(must().weights[family]).size;
    const { memoryBytes, lanes } = onDevice.info;
    assert.equal(lanes, 1);
    assert(memoryBytes > 0.5 * bytes && memoryBytes < bytes + 2e9, `${memoryBytes} of a file of ${bytes}`);
    const heard = new Set<string>();
    const sounds = [sweep(2), sweep(5, 3100), sweep(0.7, 900)];
    for (const [i, options] of ASKED[family].entries()) {
      // The software device takes seconds for each, so that one option has all sounds and the others one.
      for (const samples of i === 0 ? sounds : sounds.slice(i % 3, (i % 3) + 1)) {
        const expected = await onCpu.transcribe(samples, options);
        const given = await onDevice.transcribe(samples, options);
        assertSameTokens(family, options, tokensOf(given), tokensOf(expected));
        assert.deepEqual(await onDevice.transcribe(samples, options), given, 'the same again');
        heard.add(JSON.stringify(tokensOf(given)));
      }
    }
    assert(heard.size > 2, 'what is heard depends on the sound');
    await Promise.all([onCpu.close(), onDevice.close()]);
  });

  test(`${family} stops on a device when the caller leaves, and gives the same afterwards`, {
    skip,
  }, async () => {
    const model = await load(family, 'vulkan');
    const [options = chunkOptions] = ASKED[family];
    const expected = await model.transcribe(sweep(2), options);
    for (const delayMs of [0, 5, 40]) {
      const leaving = new AbortController();
      setTimeout(() => leaving.abort('left'), delayMs);
      const call = model.transcribe(sweep(30), { ...options, audioContext: 0 }, { signal: leaving.signal });
      await assert.rejects(call, (reason) => reason === 'left');
    }
    assert.deepEqual(await model.transcribe(sweep(2), options), expected);
    await model.close();
  });
}

test('Whisper finds the language on a device as it does on the CPU', { skip }, async () => {
  const [cpu, device] = [await load('whisper', 'cpu'), await load('whisper', 'vulkan')];
  const expected = await cpu.detectLanguage(sweep(2), { audioContext: 300 });
  const given = await device.detectLanguage(sweep(2), { audioContext: 300 });
  assert.equal(given.language, expected.language);
  assert(Math.abs(given.probability - expected.probability) < 0.02);
  await Promise.all([cpu.close(), device.close()]);
});

test('a device that is not there is refused by its number, and its library is named', { skip }, async () => {
  for (const device of ['vulkan:7', 'cuda'])
    await assert.rejects(load('sensevoice', device), { code: 'load_failed', message: /GPUs are usable/ });
});

/** In a process of its own, because a lost device is lost for the process. Gives what happened, line by line. */
async function underFailure(script: string): Promise<string[]> {
  const { env, file } = must().failing();
  const options = Object.fromEntries(FAMILIES.map((family) => [family, ASKED[family][0]]));
  const said = await inProcess(
    must().addon,
    { gpus: true },
    `import { writeFileSync } from 'node:fs';
     const weights = ${JSON.stringify(must().weights)}, options = ${JSON.stringify(options)};
     const fail = (what) => writeFileSync(${JSON.stringify(file)}, what);
     const load = (family, device = 'vulkan', path = weights[family]) =>
       native.loadModel({ family, path, device, threads: 2 });
     const samples = Float32Array.from({ length: 32000 }, (_, i) => 0.3 * Math.sin((i % 4000) ** 2 / 1e5));
     const hear = (model) => model.transcribe(samples, options[model.info.family]);
     const tell = (promise) => promise.then(() => console.log('ok'), ({ code }) => console.log(code));
     ${script}`,
    env,
  );
  return said.trimEnd().split('\n');
}
const OUT_OF_MEMORY = -2;
const DEVICE_LOST = -4;

for (const family of FAMILIES) {
  test(`${family}: a device without memory is out_of_memory, and is used again when it has some`, {
    skip,
  }, async () => {
    const said = await underFailure(`
      fail('vkAllocateMemory ${OUT_OF_MEMORY}');
      await tell(load('${family}'));
      fail('');
      const model = await load('${family}');
      await tell(hear(model));
      fail('vkQueueSubmit ${OUT_OF_MEMORY} once');
      await tell(hear(model));
      await tell(hear(model));
      await tell(load('${family}').then(hear));`);
    assert.deepEqual(said, ['out_of_memory', 'ok', 'out_of_memory', 'inference_failed', 'ok']);
  });

  test(`${family}: a device that is still full while the model is freed ends nothing, and the CPU goes on`, {
    skip,
  }, async () => {
    const said = await underFailure(`
      const [model, cpu] = [await load('${family}'), await load('${family}', 'cpu')];
      fail('vkQueueSubmit ${OUT_OF_MEMORY}');
      await tell(hear(model));
      await model.close();
      await tell(load('${family}'));
      await tell(hear(cpu));`);
    assert.deepEqual(said.slice(0, 1), ['out_of_memory']);
    assert.deepEqual(said.slice(-1), ['ok']);
    assert.equal(said.length, 3, said.join());
  });

  for (const where of ['vkQueueSubmit', 'vkGetFenceStatus']) {
    test(`${family}: a device lost in ${where} fails each later call on it, and the CPU goes on`, {
      skip,
    }, async () => {
      const said = await underFailure(`
        const [model, other, cpu] = [await load('${family}'), await load('sensevoice'), await load('${family}', 'cpu')];
        fail('${where} ${DEVICE_LOST}');
        await tell(hear(model));
        fail('');
        await tell(hear(model));
        await tell(hear(other));
        await tell(load('${family}'));
        await model.close();
        await tell(hear(cpu));`);
      const refused = ['inference_failed', 'inference_failed', 'inference_failed', 'load_failed'];
      assert.deepEqual(said, [...refused, 'ok']);
    });
  }
}

test('weights that the library has no shaders for fail clearly', { skip }, async () => {
  const said = await underFailure(
    `await tell(load('whisper', 'vulkan', ${JSON.stringify(must().quantized)}).then(hear));`,
  );
  assert.deepEqual(said, ['inference_failed']);
});

/** Serves over the weights of Parakeet, whose text is known. */
function serveOn(device: string, env: Record<string, string>) {
  const files = { european: must().weights.parakeet, 'voice-activity': must().voiceActivity };
  return serve(
    {
      ...env,
      SVC_DEVICE: device,
      VOXGATE_TEST_ADDON: must().addon,
      VOXGATE_TEST_FILES: JSON.stringify(files),
    },
    ['--import', 'tsx', 'test/deep/vulkan-serve.ts', 'serve'],
  );
}
async function textFrom(base: string): Promise<string> {
  const body = form(toneWav(8), { model: 'european' });
  const response = await fetch(`${base}/v1/audio/transcriptions`, { method: 'POST', body });
  assert.equal(response.status, 200);
  return (await json(response)).text;
}

test('the gateway serves from a device, and from the CPU when that is lost in the middle', {
  skip,
}, async () => {
  const { env, fail } = must().failing();
  await using gateway = await serveOn('vulkan', env);
  const text = await textFrom(gateway.base);
  assert.match(text, /Hello, Dr\. Europa\./);
  assert.match(gateway.log(), /device=vulkan:0/);
  assert.doesNotMatch(gateway.log(), /falls back/);
  fail(`vkQueueSubmit ${DEVICE_LOST}`);
  assert.equal(await textFrom(gateway.base), text);
  assert.match(gateway.log(), /european falls back to the CPU: The GPU failed/);
  assert.equal(await textFrom(gateway.base), text);
});

test('the gateway serves from the CPU where the device has no memory for the weights', { skip }, async () => {
  const { env, fail } = must().failing();
  await using gateway = await serveOn('vulkan', env);
  fail(`vkAllocateMemory ${OUT_OF_MEMORY}`);
  assert.match(await textFrom(gateway.base), /Hello, Dr\. Europa\./);
  assert.match(gateway.log(), /european falls back to the CPU/);
});

test('the gateway says why it serves from the CPU where there is no device', { skip }, async () => {
  await using gateway = await serveOn('vulkan', { VK_DRIVER_FILES: '/nowhere', GGML_VK_VISIBLE_DEVICES: '' });
  assert.match(await textFrom(gateway.base), /Hello, Dr\. Europa\./);
  assert.match(gateway.log(), /device=cpu/);
  assert.match(gateway.log(), /The Vulkan library of this build finds no GPU/);
});
