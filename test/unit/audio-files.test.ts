/** Which files `voxgate transcribe` takes from folders, once and while it watches them (src/cli/audio-files.ts). */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type AudioFile, audioFiles } from '../../src/cli/audio-files.ts';

const NOBODY = 65_534;

function folderOf(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-audio-files-'));
  chmodSync(dir, 0o755);
  t.after(() => rmSync(dir, { recursive: true }));
  return dir;
}

/** The next of the files, with none of what is only for its reader. */
async function next(files: AsyncGenerator<AudioFile, void>) {
  const { value } = await files.next();
  assert(value !== undefined);
  return value;
}

const skip = process.platform === 'win32' && 'Windows has no pipes with a path, nor folders that are locked';

test('files and links to files are taken, and what may never end is left alone', { skip }, async (t) => {
  const dir = folderOf(t);
  mkdirSync(join(dir, 'b'));
  for (const name of ['c.wav', 'b/a.MP3', 'notes.txt']) writeFileSync(join(dir, name), 'x');
  symlinkSync(join(dir, 'c.wav'), join(dir, 'd.wav'));
  execFileSync('mkfifo', [join(dir, 'pipe.wav')]);
  const found: string[] = [];
  for await (const { name } of audioFiles([dir], { watch: false, signal: new AbortController().signal }))
    found.push(name);
  assert.deepEqual(found, ['b/a.MP3', 'c.wav', 'd.wav']);
});

test('of files that end in .ts only transport streams are taken', { skip }, async (t) => {
  const dir = folderOf(t);
  const stream = Buffer.alloc(4 * 188);
  for (let at = 0; at < stream.length; at += 188) stream[at] = 0x47;
  writeFileSync(join(dir, 'video.ts'), stream);
  writeFileSync(join(dir, 'code.ts'), 'export const greeting = "Good morning";\n'.repeat(50));
  writeFileSync(join(dir, 'empty.ts'), '');
  symlinkSync(join(dir, 'none'), join(dir, 'dangling.ts'));
  const found: string[] = [];
  for await (const { name } of audioFiles([dir], { watch: false, signal: new AbortController().signal }))
    found.push(name);
  assert.deepEqual(found, ['video.ts']);
});

for (const watch of [false, true])
  test(`a folder that cannot be read comes with its problem, and the others are read (watch: ${watch})`, {
    skip,
  }, async (t) => {
    const dir = folderOf(t);
    mkdirSync(join(dir, 'locked'), { mode: 0 });
    writeFileSync(join(dir, 'open.wav'), 'x');
    const stop = new AbortController();
    const isRoot = process.getuid?.() === 0; // who may read everything
    if (isRoot) process.seteuid?.(NOBODY);
    try {
      const files = audioFiles([dir], { watch, signal: stop.signal });
      const locked = await next(files);
      assert.equal(locked.path, join(dir, 'locked'));
      assert.match(String(locked.problem), /EACCES/);
      const file = await next(files);
      assert.deepEqual([file.name, file.problem], ['open.wav', undefined]);
      stop.abort();
      assert.equal((await files.next()).done, true);
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  });

test('a watched file that could not be sent comes once more after a while, and others do not', async (t) => {
  const dir = folderOf(t);
  for (const name of ['a.wav', 'b.wav']) writeFileSync(join(dir, name), 'x');
  const stop = new AbortController();
  const files = audioFiles([dir], { watch: true, signal: stop.signal, againMs: 100 });
  const [first, second] = [await next(files), await next(files)];
  assert.deepEqual([first.name, second.name], ['a.wav', 'b.wav']);
  second.again?.();
  const third = await next(files);
  assert.equal(third.name, 'b.wav');
  const fourth = files.next();
  setTimeout(() => stop.abort(), 500);
  assert.equal((await fourth).done, true);
});
