/** `npm run release` makes what a release needs in a clone, and refuses what would be no release. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(path, 'utf8');

/** A clone of this tree with its packages and its addon, on the same file system: they are linked. */
let clone: string;
const git = (...args: string[]) => execFileSync('git', args, { cwd: clone, encoding: 'utf8' });
const commit = (message: string) => git('commit', '--quiet', '--all', '--message', message);

before(() => {
  mkdirSync(join(ROOT, 'build'), { recursive: true });
  clone = mkdtempSync(join(ROOT, 'build/release-test-'));
  execFileSync('git', ['clone', '--quiet', ROOT, clone]);
  git('checkout', '--quiet', '-B', 'main');
  git('config', 'user.name', 'Tester');
  git('config', 'user.email', 'tester@voxgate.example');
  execFileSync('cp', ['-al', join(ROOT, 'node_modules'), clone]);
  for (const path of ['scripts', 'CHANGELOG.md', 'package.json', 'package-lock.json'])
    cpSync(join(ROOT, path), join(clone, path), { recursive: true });
  git('add', '--all');
  if (git('status', '--porcelain') !== '') commit('test: what is not committed yet');
  mkdirSync(join(clone, 'build'));
  for (const path of ['Release', 'voxgate-build.json'])
    execFileSync('cp', ['-al', join(ROOT, 'build', path), join(clone, 'build')]);
});
after(() => rmSync(clone, { recursive: true, force: true }));

function release(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/release.mjs', ...args], {
    cwd: clone,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

test('a dry run makes the commit, the tag, the packages, the bill of materials and their checksums', () => {
  const head = git('rev-parse', 'HEAD');
  for (const library of ['cuda', 'vulkan']) {
    const lib = join(clone, `build-${library}/lib`);
    mkdirSync(lib, { recursive: true });
    // Any library will do. That of CUDA is packed with those of NVIDIA that it needs, and this one needs none.
    const any = join(clone, 'build/Release/libvoxgate-ggml-base.so');
    cpSync(any, join(lib, `libggml-${library}.so`), { dereference: true });
  }
  const gpus = ['--gpu=build-cuda', '--gpu=build-vulkan'];
  const { status, stdout, stderr } = release('7.8.9', '--dry-run', ...gpus);
  assert.equal(status, 0, stdout + stderr);
  const out = join(clone, 'build/release/7.8.9');
  const tree = join(out, 'tree');
  const inTree = (...args: string[]) => execFileSync('git', args, { cwd: tree, encoding: 'utf8' });

  assert.equal(inTree('log', '-1', '--format=%s'), 'release: voxgate 7.8.9\n');
  assert.equal(inTree('rev-parse', 'HEAD~1'), head);
  assert.equal(inTree('status', '--porcelain'), '');
  const packageLock = JSON.parse(read(join(tree, 'package-lock.json')));
  assert.equal(JSON.parse(read(join(tree, 'package.json'))).version, '7.8.9');
  assert.deepEqual([packageLock.version, packageLock.packages[''].version], ['7.8.9', '7.8.9']);
  const changelog = read(join(tree, 'CHANGELOG.md'));
  assert.match(changelog, /^## \[Unreleased\]\n\n## \[7\.8\.9\] - \d{4}-\d\d-\d\d\n\n### /m);
  const changes = read(join(out, 'NOTES.md')).trim();
  assert(changelog.includes(changes) && changes.startsWith('### '));
  const tag = inTree('tag', '--list', 'v7.8.9', '--format=%(objecttype)%(contents)');
  assert.equal(tag.trim(), `tagrelease: voxgate 7.8.9\n\n${changes}`);

  const files = read(join(out, 'SHA256SUMS')).trim().split('\n');
  const names = files.map((line) => line.split('  ')[1]);
  const [engine, cuda, vulkan] = ['', '-cuda', '-vulkan'].map(
    (kind) => `voxgate-engine-linux-${process.arch}${kind}-7.8.9.tgz`,
  );
  const others = ['NOTES.md', 'voxgate-7.8.9.cdx.json', 'voxgate-7.8.9.tgz'];
  assert.deepEqual(names.toSorted(), [...others, engine, cuda, vulkan]);
  execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out });
  const bill = JSON.parse(read(join(out, 'voxgate-7.8.9.cdx.json')));
  assert.equal(bill.metadata.component.version, '7.8.9');
  assert(bill.components.some(({ name }: { name: string }) => name === 'ggml'));
  const manifest = execFileSync('tar', ['xOf', join(out, 'voxgate-7.8.9.tgz'), 'package/package.json']);
  const { version, optionalDependencies, ...peers } = JSON.parse(manifest.toString());
  assert.equal(version, '7.8.9');
  const name = `@voxgate/engine-linux-${process.arch}`;
  assert.equal(optionalDependencies[name], '7.8.9');
  assert.equal(peers.peerDependencies[`${name}-cuda`], '*');
  assert.deepEqual(peers.peerDependenciesMeta[`${name}-vulkan`], { optional: true });

  assert.equal(git('rev-parse', 'HEAD'), head, 'this tree is as it was');
  assert.equal(git('tag', '--list', 'v7.8.9') + git('status', '--porcelain'), '');
  const published = (command: string) =>
    [...stdout.matchAll(new RegExp(`${command} \\S*/(\\S+)`, 'g'))].map(([, name]) => name);
  assert.deepEqual(published('gh release upload v7.8.9'), [cuda], 'npm takes none as large');
  const onNpm = published('npm publish');
  assert.deepEqual(onNpm.toSorted(), ['voxgate-7.8.9.tgz', engine, vulkan]);
  assert.equal(onNpm.at(-1), 'voxgate-7.8.9.tgz', 'the engines come first');
});

function assertRefused(why: RegExp, ...args: string[]): void {
  const { status, stdout, stderr } = release(...args);
  assert.equal(status, 1, stdout);
  assert.match(stderr, why);
  assert.equal(stdout, '', 'nothing was made');
}

test('what is no version, or does not follow the last one, is refused', () => {
  for (const version of ['', '1.2', 'v1.2.3', '1.2.3-rc.1', '../1.2.3'])
    assertRefused(/is no version like 1\.2\.3/, version, '--dry-run');
  git('tag', 'v3.4.5');
  assertRefused(/there is a tag v3\.4\.5/, '3.4.5', '--dry-run');
  const changelog = join(clone, 'CHANGELOG.md');
  writeFileSync(changelog, `${read(changelog)}\n## [9.0.0] - 2026-01-01\n\n### Added\n\n- More.\n`);
  commit('test: an earlier release');
  for (const version of ['8.9.9', '9.0.0']) assertRefused(/does not follow 9\.0\.0/, version, '--dry-run');
});

test('a release is made of what main has committed, and of nothing without changes', () => {
  const readme = join(clone, 'README.md');
  writeFileSync(readme, `${read(readme)}\n`);
  assertRefused(/changes that are not committed/, '9.0.1');
  commit('test: a change');
  git('checkout', '--quiet', '-b', 'side');
  assertRefused(/this branch is "side"/, '9.0.1');
  git('checkout', '--quiet', 'main');
  const changelog = join(clone, 'CHANGELOG.md');
  writeFileSync(
    changelog,
    '# Changelog\n\n## [Unreleased]\n\n## [9.0.0] - 2026-01-01\n\n### Added\n\n- More.\n',
  );
  commit('test: nothing new');
  assertRefused(/no change below "Unreleased"/, '9.0.1');
});
