/** What the gateway is made of is pinned, runs nothing when it is installed, has a license that fits, and is listed. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { z } from 'zod';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

interface Locked {
  version: string;
  integrity?: string;
  license?: string;
  dev?: boolean;
  optional?: boolean;
  hasInstallScript?: boolean;
}

function packagesOf(lockfile: string): [name: string, entry: Locked][] {
  const { packages } = JSON.parse(read(lockfile)) as { packages: Record<string, Locked> };
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .map(([path, entry]) => [path.replace(/^.*node_modules\//, ''), entry]);
}

/**
 * Binaries of development tools for other platforms. The package index that wrote the lockfile does not have them, and
 * `npm ci` asks that the lockfile names them. npm writes their integrity when it runs where they are to be had.
 */
const BINARIES = /^(@biomejs\/cli-|@oxc-parser\/binding-|@node-llama-cpp\/|@rollup\/rollup-)/;
const LOCKFILES = ['package-lock.json', 'test/upstreams/package-lock.json', 'site/package-lock.json'];

test('every package of the lockfiles has its integrity, but for binaries of development tools', () => {
  for (const lockfile of LOCKFILES) {
    const packages = packagesOf(lockfile);
    assert.ok(packages.length > 50, lockfile);
    for (const [name, { integrity, optional, dev }] of packages) {
      if (integrity !== undefined) assert.match(integrity, /^sha512-[\w+/]{86}==$/, `${lockfile}: ${name}`);
      else assert.ok(optional && BINARIES.test(name), `${lockfile}: ${name} has no integrity`);
      if (integrity === undefined && lockfile === 'package-lock.json')
        assert.ok(dev, `${name} is not for development`);
    }
  }
});

test('every version is exact, and comes from a package index', () => {
  for (const lockfile of LOCKFILES)
    for (const [name, { version }] of packagesOf(lockfile)) assert.match(version, /^\d+\.\d+\.\d+/, name);
  const { dependencies, devDependencies } = JSON.parse(read('package.json'));
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies }))
    assert.match(String(version), /^\d+\.\d+\.\d+$/, name);
});

test('no package runs a script of its own when it is installed', () => {
  /** These would, if npm let them: neither is needed. */
  const silenced = {
    '@scarf/scarf': 'it reports the installation to its makers',
    esbuild: 'it checks its binary, which works without',
    'node-llama-cpp': 'it would fetch or compile what an ordinary dependency holds',
  };
  const found = LOCKFILES.flatMap(packagesOf).filter(([, entry]) => entry.hasInstallScript);
  assert.deepEqual([...new Set(found.map(([name]) => name))].sort(), Object.keys(silenced).sort());
  for (const settings of ['.npmrc', 'test/upstreams/.npmrc', 'site/.npmrc'])
    assert.match(read(settings), /^ignore-scripts=true$/m);
});

const ALLOWED = '0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BlueOak-1.0.0 ISC MIT MIT-0 Unlicense Zlib'.split(
  ' ',
);

/** True when every part of an SPDX expression leaves a license that is allowed. */
function isAllowed(expression: string): boolean {
  return expression
    .replaceAll(/[()]/g, '')
    .split(' AND ')
    .every((choice) => choice.split(' OR ').some((license) => ALLOWED.includes(license)));
}

test('every package has a license under which the gateway may be passed on', () => {
  for (const refused of ['GPL-3.0-only', 'UNLICENSED', 'MIT AND GPL-3.0-only', 'CC-BY-NC-4.0'])
    assert.ok(!isAllowed(refused), refused);
  for (const [name, { license, dev }] of packagesOf('package-lock.json')) {
    // An older package names its licenses in a list, which the lockfile leaves out.
    const listed = () => JSON.parse(read(`node_modules/${name}/package.json`)).licenses[0].type;
    const its = license ?? listed();
    // What only the tests run is never passed on. That of axe-core allows its use, and one does not say which BSD it is.
    if (dev === true && ['MPL-2.0', 'BSD'].includes(its)) continue;
    assert.ok(isAllowed(its), `${name}: ${its}`);
  }
});

const sbom = (...args: string[]) =>
  execFileSync(process.execPath, ['scripts/sbom.mjs', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });

/** The part of https://cyclonedx.org/schema/bom-1.5.schema.json that the document uses. */
const hash = z.strictObject({
  alg: z.enum(['SHA-256', 'SHA-512', 'SHA-1']),
  content: z.string().regex(/^[a-f0-9]{40,128}$/),
});
const license = z.union([
  z.strictObject({ license: z.strictObject({ id: z.string().min(1) }) }),
  z.strictObject({ license: z.strictObject({ name: z.string().min(1) }) }),
  z.strictObject({ expression: z.string().min(1) }),
]);
const component = z.strictObject({
  'bom-ref': z.string().min(1),
  type: z.enum(['application', 'library']),
  name: z.string().min(1),
  version: z.string().min(1),
  scope: z.enum(['required', 'optional', 'excluded']),
  author: z.string().optional(),
  description: z.string().optional(),
  purl: z.string().regex(/^pkg:[a-z]+\/.+@.+$/),
  properties: z.array(z.strictObject({ name: z.string(), value: z.string() })).optional(),
  externalReferences: z.array(z.strictObject({ type: z.string(), url: z.string() })).optional(),
  hashes: z.array(hash).optional(),
  licenses: z.array(license).min(1),
});
const document = z.strictObject({
  $schema: z.literal('http://cyclonedx.org/schema/bom-1.5.schema.json'),
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.literal('1.5'),
  serialNumber: z.string().regex(/^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
  version: z.literal(1),
  metadata: z.strictObject({
    timestamp: z.iso.datetime(),
    lifecycles: z.array(z.strictObject({ phase: z.string() })),
    tools: z.array(z.strictObject({ vendor: z.string(), name: z.string(), version: z.string() })),
    component,
  }),
  components: z.array(component),
  dependencies: z.array(z.strictObject({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

/** What cmake compiles into the addon. */
const NATIVE = ['ggml', 'miniaudio', 'stb_vorbis', 'whisper.cpp'];

test('the bill of materials is CycloneDX and holds every package that runs, and the sources of the addon', () => {
  const { metadata, components, dependencies } = document.parse(JSON.parse(sbom()));
  assert.deepEqual([metadata.component.name, metadata.component.type], ['voxgate', 'application']);
  const refs = new Set([metadata.component, ...components].map((part) => part['bom-ref']));
  assert.equal(refs.size, components.length + 1, 'every reference is the only one of its name');
  for (const { ref, dependsOn } of dependencies)
    for (const other of [ref, ...dependsOn])
      assert.ok(refs.has(other), `${ref} depends on ${other}, which is not listed`);
  const listed = components.map(({ name, version }) => `${name}@${version}`);
  const running = packagesOf('package-lock.json').filter(([, { dev }]) => !dev);
  const wanted = running.map(([name, { version }]) => `${name}@${version}`);
  const native = listed.filter((name) => !wanted.includes(name));
  assert.deepEqual(native.map((name) => name.split('@')[0]).sort(), NATIVE);
  for (const name of wanted) assert.ok(listed.includes(name), `${name} is not listed`);
  const own = dependencies.find(({ ref }) => ref === metadata.component['bom-ref']);
  for (const name of ['whisper.cpp', 'ggml', 'miniaudio', 'stb_vorbis'])
    assert.ok(
      own?.dependsOn.some((ref) => ref.startsWith(`${name}@`)),
      name,
    );
});

test('THIRD-PARTY.md lists every component with its version and license', () => {
  const rows = (text: string) =>
    [...text.matchAll(/^\| (\S+) +\| (\d\S*) +\| (.+?) +\|$/gm)].map(
      ([, name, version, spdx]) => `${name} ${version} ${spdx}`,
    );
  const listed = rows(read('THIRD-PARTY.md'));
  assert.ok(listed.length > 100);
  assert.deepEqual(listed, rows(sbom('--third-party')));
  for (const row of listed) assert.ok(isAllowed(row.split(' ').slice(2).join(' ')), row);
});
