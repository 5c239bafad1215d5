/** Folders are made with those above them, and what cannot be made is told at once. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeFolder } from '../../src/make-folder.ts';

const dir = mkdtempSync(join(tmpdir(), 'voxgate-make-folder-'));
after(() => rmSync(dir, { recursive: true }));

test('a folder and those above it are made, once, with the mode', () => {
  const path = join(dir, 'a', 'b', 'c');
  makeFolder(path, { mode: 0o700 });
  makeFolder(path);
  assert(existsSync(path));
  assert.equal(statSync(join(dir, 'a')).mode & 0o777, 0o700);
});

test('a file in the way is told', () => {
  const file = join(dir, 'file');
  writeFileSync(file, '');
  assert.throws(() => makeFolder(file), { code: 'EEXIST' });
  assert.throws(() => makeFolder(join(file, 'a', 'b')), { code: 'ENOTDIR' });
});

// With `recursive`, Node does not return from this.
test('a file system that takes no folders is told', { skip: process.platform !== 'linux' }, () => {
  assert.throws(() => makeFolder('/proc/nope'), { code: 'ENOENT', path: '/proc/nope' });
  assert.throws(() => makeFolder('/proc/nope/a'), { code: 'ENOENT', path: '/proc/nope' });
});
