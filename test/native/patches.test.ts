/** The patches of native/patches/ fit the sources that are compiled, and one that does not fit says so. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';

const ROOT = new URL('../../', import.meta.url).pathname;
const SOURCES = join(ROOT, 'node_modules/nodejs-whisper/cpp/whisper.cpp');
const dir = mkdtempSync(join(tmpdir(), 'voxgate-patches-'));
after(() => rmSync(dir, { recursive: true, force: true }));

const patches = readdirSync(join(ROOT, 'native/patches'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.patch'))
  .sort()
  .map((name) => join(ROOT, 'native/patches', name));

/** Applies patches as the build does, with git or without. */
function apply(files: readonly string[], target: string, git = true) {
  const script = join(dir, 'apply.cmake');
  writeFileSync(
    script,
    `cmake_minimum_required(VERSION 3.22)
    include("${ROOT}cmake/patches.cmake")
    ${git ? '' : 'set(VOXGATE_GIT "")'}
    voxgate_apply_patches("${SOURCES}" "${target}" ${files.map((file) => `"${file}"`).join(' ')})`,
  );
  return spawnSync('cmake', ['-P', script], { encoding: 'utf8' });
}

/** The files below a folder, with their content. */
const content = (folder: string) =>
  Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => statSync(join(folder, name)).isFile())
      .map((name) => [name, readFileSync(join(folder, name), 'utf8')]),
  );

test('every patch fits its source, in a build inside of this repository too', () => {
  const inside = mkdtempSync(join(ROOT, 'build-patches-'));
  try {
    for (const target of [join(dir, 'patched'), join(inside, 'patched')]) {
      const { status, stderr } = apply(patches, target);
      assert.equal(status, 0, stderr);
    }
    const patched = content(join(dir, 'patched'));
    assert.deepEqual(content(join(inside, 'patched')), patched);
    assert.equal(Object.keys(patched).length, 9);
    for (const [name, text] of Object.entries(patched))
      assert.notEqual(text, readFileSync(join(SOURCES, name), 'utf8'), name);
  } finally {
    rmSync(inside, { recursive: true, force: true });
  }
});

test('every patch begins with its reason, and is numbered in its project', () => {
  const numbers = new Map<string, number>();
  for (const file of patches) {
    const [reason = ''] = readFileSync(file, 'utf8').split('\n\ndiff --git ');
    assert.match(reason, /^\S[\s\S]{20,}\.$/, file);
    const project = join(file, '..');
    const number = (numbers.get(project) ?? 0) + 1;
    assert.match(basename(file), new RegExp(`^${String(number).padStart(4, '0')}-[a-z0-9-]+\\.patch$`));
    numbers.set(project, number);
  }
});

test('a patch that does not fit ends the configuration with its name and the file', () => {
  const wrong = join(dir, '0001-wrong.patch');
  writeFileSync(
    wrong,
    'Nothing.\n\n--- a/src/whisper.cpp\n+++ b/src/whisper.cpp\n@@ -5,1 +5,1 @@\n-no such line\n+another\n',
  );
  const { status, stderr } = apply([wrong], join(dir, 'never'));
  assert.notEqual(status, 0);
  assert.match(stderr, /0001-wrong\.patch does not fit/);
  assert.match(stderr, /src\/whisper\.cpp/);
});

test('a machine without git has the same sources by patch', () => {
  const { status, stderr } = apply(patches, join(dir, 'by-patch'), false);
  assert.equal(status, 0, stderr);
  assert.equal(apply(patches, join(dir, 'by-git')).status, 0);
  assert.deepEqual(content(join(dir, 'by-patch')), content(join(dir, 'by-git')));
});

test('what stays as it was is not written again', () => {
  const target = join(dir, 'again');
  const times = () => Object.keys(content(target)).map((name) => statSync(join(target, name)).mtimeMs);
  apply(patches, target);
  const before = times();
  apply(patches, target);
  assert.deepEqual(times(), before);
});
