/** The folder of the uploads: it is made again when it is gone, and what dead processes left behind is removed. */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createSpoolFolder } from '../../src/http/upload/spool-folder.ts';
import { until } from '../until.ts';

const SOURCE = new URL('../../src/http/upload/spool-folder.ts', import.meta.url).href;
const isRoot = process.getuid?.() === 0;

function place(t: TestContext) {
  const tmpDir = mkdtempSync(join(tmpdir(), 'voxgate-spool-test-'));
  const warnings: string[] = [];
  const log = {
    warn: (message: string, details: object) => void warnings.push(`${message} ${JSON.stringify(details)}`),
  };
  t.after(() => rmSync(tmpDir, { recursive: true, force: true }));
  const start = (times = { touchMs: 20, staleMs: 300, sweepMs: 50 }) => {
    const folder = createSpoolFolder({ tmpDir, log, times });
    t.after(() => folder.close());
    return folder;
  };
  return { tmpDir, warnings, start, names: () => readdirSync(tmpDir).sort() };
}

/** Another process with a folder of its own, optionally in a process namespace of its own. */
async function neighbor(tmpDir: string, namespaced = false): Promise<ChildProcess> {
  const script = `
    const { createSpoolFolder } = await import('${SOURCE}');
    const times = { touchMs: 20, staleMs: 60000, sweepMs: 60000 };
    await createSpoolFolder({ tmpDir: '${tmpDir}', log: console, times }).ready();
    setInterval(() => {}, 1000);
    console.log('ready');`;
  const node = [process.execPath, '--import', 'tsx', '--input-type=module', '-e', script];
  const [command = '', ...args] = namespaced ? ['unshare', '--pid', '--fork', '--kill-child', ...node] : node;
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

test('a folder that is gone, or is no folder any more, is made again', async (t) => {
  const { start, tmpDir } = place(t);
  const folder = start();
  const first = await folder.ready();
  assert.equal(await folder.ready(), first);
  rmSync(first, { recursive: true });
  const second = await folder.ready();
  assert(existsSync(second));
  rmSync(second, { recursive: true });
  writeFileSync(second, '');
  const third = await folder.ready();
  assert.notEqual(third, second);
  rmSync(tmpDir, { recursive: true });
  const both = await Promise.all([folder.ready(), folder.ready()]);
  assert.deepEqual(both, [both[0], both[0]], 'two uploads make one folder');
});

test('what a dead process left is removed at the start, and what a living one has is not', async (t) => {
  const { start, tmpDir, names } = place(t);
  const dead = await neighbor(tmpDir);
  const living = await neighbor(tmpDir);
  t.after(() => living.kill('SIGKILL'));
  await kill(dead);
  assert.equal(names().length, 2);
  const folder = start();
  assert.equal(names().length, 2);
  assert(names().includes(basename(await folder.ready())));
  assert(names().some((name) => name.includes(`-${living.pid}-`)));
  assert(!names().some((name) => name.includes(`-${dead.pid}-`)));
});

test('a second folder of this process leaves the first alone', async (t) => {
  const { start } = place(t);
  const first = await start().ready();
  start();
  assert(existsSync(first));
});

const noNamespaces = (() => {
  try {
    execFileSync('unshare', ['--pid', '--fork', 'true'], { stdio: 'ignore' });
    return false as const;
  } catch {
    return 'this user may make no process namespace';
  }
})();

test('a neighbor in another process namespace keeps its folder while it lives, and only then', {
  skip: noNamespaces,
}, async (t) => {
  const { start, tmpDir, names } = place(t);
  const other = await neighbor(tmpDir, true);
  t.after(() => other.kill('SIGKILL'));
  const theirs = names()[0] ?? '';
  assert.match(theirs, /-1-\w+$/, 'the first process of its namespace');
  const startedAt = performance.now();
  start();
  await until('several limits have passed', () => performance.now() - startedAt > 1500);
  assert(existsSync(join(tmpDir, theirs)));
  await kill(other);
  await until('its folder is gone', () => !names().includes(theirs));
});

test('a folder whose time stands still is left for as long as this process has not watched it', async (t) => {
  const { start, tmpDir } = place(t);
  const theirs = join(tmpDir, 'voxgate-00000000-1-abcdef');
  mkdirSync(theirs);
  execFileSync('touch', ['-d', '2001-01-01', theirs]); // a clock that was set, or a disk with a clock of its own
  start({ touchMs: 20, staleMs: 60_000, sweepMs: 20 });
  const startedAt = performance.now();
  await until('many sweeps have passed', () => performance.now() - startedAt > 500);
  assert(existsSync(theirs));
});

test('a folder that cannot be removed does not prevent the start', async (t) => {
  const { start, tmpDir, warnings } = place(t);
  const dead = await neighbor(tmpDir);
  await kill(dead);
  const left = join(tmpDir, readdirSync(tmpDir)[0] ?? '');
  const undo = unremovable(left);
  try {
    const folder = start();
    assert(existsSync(await folder.ready()));
    assert.match(warnings[0] ?? '', /Cannot remove an abandoned upload folder/);
    const startedAt = performance.now();
    await until('several sweeps have passed', () => performance.now() - startedAt > 300);
    assert.equal(warnings.length, 1, 'it is said once');
  } finally {
    undo();
  }
});

/** Makes a folder that this user cannot remove: root is only kept from it by a mount. */
function unremovable(path: string): () => void {
  if (isRoot) {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', path]);
    return () => void execFileSync('umount', [path]);
  }
  const locked = join(path, 'locked');
  mkdirSync(locked);
  writeFileSync(join(locked, 'file'), '');
  chmodSync(locked, 0o500);
  return () => chmodSync(locked, 0o700);
}

test('another user’s folder is left alone', {
  skip: isRoot ? false : 'only root can give a folder away',
}, async (t) => {
  const { start, tmpDir } = place(t);
  const dead = await neighbor(tmpDir);
  await kill(dead);
  const theirs = join(tmpDir, readdirSync(tmpDir)[0] ?? '');
  chownSync(theirs, 65534, 65534);
  const folder = start();
  assert(existsSync(theirs));
  const own = await folder.ready();
  chownSync(own, 65534, 65534);
  assert.notEqual(await folder.ready(), own, 'no upload goes to a folder of another user');
  chownSync(own, 0, 0);
});

test('a place where no folder can be made prevents uploads and not the start', async (t) => {
  const { tmpDir, warnings } = place(t);
  const file = join(tmpDir, 'file');
  writeFileSync(file, '');
  const log = { warn: (message: string) => void warnings.push(message) };
  const folder = createSpoolFolder({ tmpDir: join(file, 'below'), log });
  t.after(() => folder.close());
  assert.deepEqual(warnings, ['Cannot make the folder of the uploads']);
  await assert.rejects(folder.ready(), /ENOTDIR/);
  rmSync(file);
  assert(existsSync(await folder.ready()));
});
