/**
 * `npm run release -- VERSION` prepares a release, in build/release/VERSION/, and publishes nothing:
 *
 *   node scripts/release.mjs VERSION [--gpu=FOLDER ...] [--dry-run]
 *
 * In a clone of the last commit it sets the version, gives the changes below `Unreleased` a heading, commits and tags.
 * There it makes the packages of npm, a bill of materials, and the checksums of both. At the end it prints the commands
 * that publish them. Each --gpu, such as `build-cuda`, adds the package of a library for GPUs that was compiled here.
 * This tree stays as it is, so that a release that is not wanted after all is removed with its folder.
 *
 * A dry run builds nothing: it takes the node_modules and the addon of this tree, for whichever processor that is, and
 * the last commit of any branch. It ends within seconds, so every check makes one.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import semver from 'semver';
import { ROOT, run } from './tools.mjs';

const { values: options, positionals } = parseArgs({
  options: {
    'dry-run': { type: 'boolean', default: false },
    gpu: { type: 'string', multiple: true, default: [] },
  },
  allowPositionals: true,
});
const [version = ''] = positionals;
const tag = `v${version}`;
const out = join(ROOT, 'build/release', version);
const tree = join(out, 'tree');

checkVersion();
const notes = checkTree();
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
commitAndTag();
makePackages();
writeFileSync(join(out, `voxgate-${version}.cdx.json`), output(process.execPath, ['scripts/sbom.mjs'], tree));
writeFileSync(join(out, 'NOTES.md'), `${notes}\n`);
writeChecksums();
tellTheRest();

function refuse(why) {
  process.stderr.write(`No release: ${why}\n`);
  process.exit(1);
}

/** @returns what a program writes; a program that fails ends this one */
function output(command, args, cwd = ROOT) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (status !== 0) refuse(`${command} ${args.join(' ')} failed: ${stderr || stdout}`);
  return stdout;
}

function checkVersion() {
  // The changelog has no place for versions that come before a version.
  if (semver.valid(version) !== version || semver.prerelease(version) !== null)
    refuse(`"${version}" is no version like 1.2.3 (https://semver.org)`);
  if (output('git', ['tag', '--list', tag]) !== '') refuse(`there is a tag ${tag}`);
  const headings = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8').matchAll(/^## \[(\d\S*)\]/gm);
  const tags = output('git', ['tag', '--list', 'v*']).split('\n');
  const released = [...[...headings].map(([, heading]) => heading), ...tags].filter((name) =>
    semver.valid(name),
  );
  const [last] = semver.rsort(released);
  if (last !== undefined && !semver.gt(version, last)) refuse(`${version} does not follow ${last}`);
}

/** @returns the changes of this release */
function checkTree() {
  if (!options['dry-run']) {
    if (output('git', ['status', '--porcelain']) !== '')
      refuse('this tree has changes that are not committed');
    const branch = output('git', ['branch', '--show-current']).trim();
    if (branch !== 'main') refuse(`this branch is "${branch}", and releases are made of main`);
  }
  const changelog = output('git', ['show', 'HEAD:CHANGELOG.md']);
  const [, unreleased = ''] = changelog.split('\n## [Unreleased]\n');
  const [changes = ''] = unreleased.split(/^## /m);
  // What stands before the kinds of changes tells which version they will become.
  const first = changes.search(/^### /m);
  if (first < 0) refuse('CHANGELOG.md tells no change below "Unreleased"');
  return changes.slice(first).trim();
}

function commitAndTag() {
  run('clone', 'git', ['clone', '--quiet', '--no-checkout', '.', tree]);
  run('checkout', 'git', ['checkout', '--quiet', '-B', 'main', output('git', ['rev-parse', 'HEAD']).trim()], {
    cwd: tree,
  });
  if (options['dry-run']) run('packages of this tree', 'cp', ['-al', join(ROOT, 'node_modules'), tree]);
  else run('packages', 'npm', ['ci', '--no-audit', '--no-fund'], { cwd: tree });
  run('version', 'npm', ['version', version, '--no-git-tag-version', '--allow-same-version'], { cwd: tree });
  change('deploy/kubernetes/deployment.yaml', /(image: voxgate:)\S+/, `$1${version}`);
  change('docs/api.md', /("version": ")[^"]+/, `$1${version}`);
  const date = new Date().toISOString().slice(0, 10);
  change(
    'CHANGELOG.md',
    /^## \[Unreleased\]\n.*?(?=^### )/ms,
    `## [Unreleased]\n\n## [${version}] - ${date}\n\n`,
  );
  const identity = ['user.name', 'user.email'].flatMap((name) => {
    const { stdout } = spawnSync('git', ['config', name], { cwd: ROOT, encoding: 'utf8' });
    return stdout === '' ? [] : ['-c', `${name}=${stdout.trim()}`];
  });
  const message = `release: voxgate ${version}`;
  run('commit', 'git', [...identity, 'commit', '--quiet', '--all', '--message', message], { cwd: tree });
  // git would take the headings for comments.
  const text = [message, '', notes].join('\n');
  const tagging = ['tag', '--annotate', '--cleanup=verbatim', tag, '--message', text];
  run('tag', 'git', [...identity, ...tagging], { cwd: tree });
}

function change(path, pattern, replacement) {
  const before = readFileSync(join(tree, path), 'utf8');
  if (!pattern.test(before)) refuse(`${path} has nothing like ${pattern}`);
  writeFileSync(join(tree, path), before.replace(pattern, replacement));
}

function makePackages() {
  const args = [
    'scripts/pack.mjs',
    `--out=${out}`,
    ...options.gpu.map((folder) => `--gpu=${resolve(folder)}`),
  ];
  if (options['dry-run']) args.push('--any-cpu', `--build=${join(ROOT, 'build')}`);
  else run('build', 'npm', ['run', '--silent', 'build', '--', '--cpu=all'], { cwd: tree });
  run('packages of npm', process.execPath, args, { cwd: tree });
}

function writeChecksums() {
  const files = readdirSync(out).filter((name) => name !== 'tree');
  const lines = files.map((name) => {
    const sum = createHash('sha256').update(readFileSync(join(out, name)));
    return `${sum.digest('hex')}  ${name}\n`;
  });
  writeFileSync(join(out, 'SHA256SUMS'), lines.join(''));
}

/**
 * Publishes the engines before `voxgate`, because an installation of `voxgate` in between would lack its engine. The
 * package for CUDA is too large for npm (docs/gpu.md) and goes to the release on GitHub, where voxgate says that it is.
 */
function tellTheRest() {
  const packages = readdirSync(out)
    .filter((name) => name.endsWith('.tgz'))
    .sort((a, b) => Number(b.includes('engine')) - Number(a.includes('engine')));
  const here = relative(process.cwd(), out) || '.';
  const commands = [
    `git fetch ${join(here, 'tree')} main tag ${tag} && git merge --ff-only FETCH_HEAD`,
    `git push --atomic origin main ${tag}`,
    ...packages.map((name) =>
      name.includes('-cuda-')
        ? `gh release upload ${tag} ${join(here, name)}`
        : `npm publish ${join(here, name)} --access public`,
    ),
  ];
  const what = options['dry-run']
    ? 'This was a dry run. A release would be published with'
    : 'Publish it with';
  process.stdout.write(`\n${what}\n\n${commands.map((command) => `  ${command}\n`).join('')}`);
}
