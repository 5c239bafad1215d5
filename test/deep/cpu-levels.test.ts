/**
 * A build for all levels of instructions (`--cpu=all`). QEMU stands for older processors: each takes its own library,
 * and no instruction that it does not have ends the process. The levels with kernels of ours write the same tokens, but
 * for those that round to bfloat16.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { JFK } from '../wav.ts';

const run = promisify(execFile);
const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const ADDON = join(ROOT, 'build-all-levels/Release/voxgate.node');
const MODEL = process.env.VOXGATE_TEST_MODEL ?? '';
const QEMU = 'qemu-x86_64';

/** Prints the level, and the tokens of the speech where a model is named. */
const SCRIPT = `
  const { loadNative } = await import(${JSON.stringify(join(ROOT, 'dist/engine/addon.js'))});
  const [path, cpu, model, clip] = process.argv.slice(1);
  const native = loadNative(path, { cpu });
  console.log(native.info.cpuLevel);
  if (model !== '') {
    const whisper = await native.loadModel({ family: 'whisper', path: model, device: 'cpu', threads: 2 });
    const file = await native.openAudio(clip, 'mp3');
    const samples = await file.read(11 * 16_000);
    const heard = await whisper.transcribe(samples, {
      ...{ language: 'en', translate: false, prompt: '', temperature: 0, audioContext: 600, maxTokens: 0 },
      ...{ beams: 5, times: true, words: false, again: false },
    });
    console.log(heard.flatMap(({ tokens }) => tokens.map(({ id }) => id)).join());
    await whisper.close();
  }`;

/** The levels with kernels of ours. */
const INTEGERS = ['avx2', 'avx2_vnni', 'avx512', 'avx512_vnni'];
const BFLOAT16 = ['avx512_bf16', 'amx'];

const script = (level: string, model: string) => [
  ...['--input-type=module', '-e', SCRIPT, ADDON, level, model, JFK],
];

before(() => {
  const build = [join(ROOT, 'scripts/build-native.mjs'), '--cpu=all', '--out=build-all-levels'];
  execFileSync(process.execPath, build, { stdio: 'inherit' });
});

const noQemu =
  spawnSync(QEMU, ['--version']).status !== 0 ? `${QEMU} is not installed (Debian: qemu-user)` : false;

for (const [processor, level] of [
  ['Nehalem', 'sse2'],
  ['SandyBridge', 'avx'],
  ['Haswell', 'avx2'],
] as const) {
  test(`a processor like ${processor} computes with ${level}`, { skip: noQemu }, async () => {
    const { stdout } = await run(QEMU, ['-cpu', processor, process.execPath, ...script('auto', '')]);
    assert.equal(stdout, `${level}\n`);
  });
}

test('the levels of this machine that have kernels write the same tokens', {
  skip: !existsSync(MODEL) && 'VOXGATE_TEST_MODEL names no file',
}, async (t) => {
  const refused = await run(process.execPath, script('none', '')).catch(
    ({ stderr }: { stderr: string }) => stderr,
  );
  const [, offered = ''] = /only for: ([a-z0-9_, ]+)/.exec(String(refused)) ?? [];
  for (const level of ['sse2', 'avx', 'avx2', 'avx2_vnni', 'avx512', 'avx512_vnni'])
    assert.ok(offered.split(', ').includes(level), `${level} is none of: ${offered}`);
  const tokens = new Map<string, string>();
  for (const level of [...INTEGERS, ...BFLOAT16]) {
    const ended = await run(process.execPath, script(level, MODEL)).catch(
      (error: { stderr: string }) => error,
    );
    if (!('stdout' in ended) || ended.stdout === '') {
      assert.match(ended.stderr, new RegExp(`This processor does not have ${level};`));
      t.diagnostic(`${level}: not on this processor`);
      continue;
    }
    const [used, ids = ''] = ended.stdout.trim().split('\n');
    assert.equal(used, level);
    assert.ok(ids.split(',').length > 20, ids);
    if (INTEGERS.includes(level)) tokens.set(level, ids);
  }
  if (!/^flags.* (avx512f|avx_vnni)\b/m.test(readFileSync('/proc/cpuinfo', 'utf8')))
    return t.skip('of the levels with kernels, this processor has one');
  assert.ok(tokens.size >= 2);
  assert.equal(new Set(tokens.values()).size, 1, JSON.stringify(Object.fromEntries(tokens)));
});
