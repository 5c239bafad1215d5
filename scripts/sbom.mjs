/**
 * Lists what a gateway is made of: the packages that it needs to run, and the C and C++ sources in its addon.
 *
 *   node scripts/sbom.mjs > voxgate.cdx.json        a CycloneDX 1.5 document (https://cyclonedx.org/docs/1.5/json/)
 *   node scripts/sbom.mjs --third-party           the table of THIRD-PARTY.md
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './tools.mjs';

const WHISPER = 'node_modules/nodejs-whisper/cpp/whisper.cpp';

/** The sources that are compiled into the addon. A pattern finds the version in a file, so that it cannot go stale. */
const NATIVE = [
  {
    name: 'whisper.cpp',
    file: 'CMakeLists.txt',
    version: /project\("whisper\.cpp" VERSION ([\d.]+)\)/,
    license: 'MIT',
    purl: 'pkg:github/ggml-org/whisper.cpp@v',
  },
  {
    name: 'ggml',
    file: 'ggml/CMakeLists.txt',
    license: 'MIT',
    purl: 'pkg:github/ggml-org/ggml@v',
    version: /GGML_VERSION_MAJOR (\d+)\)\s*set\(GGML_VERSION_MINOR (\d+)\)\s*set\(GGML_VERSION_PATCH (\d+)\)/,
  },
  {
    name: 'miniaudio',
    file: 'examples/miniaudio.h',
    version: /^miniaudio - v([\d.]+)/m,
    single: true,
    license: 'Unlicense OR MIT-0',
    purl: 'pkg:github/mackron/miniaudio@',
  },
  {
    name: 'stb_vorbis',
    file: 'examples/stb_vorbis.c',
    version: /Ogg Vorbis audio decoder - v([\d.]+)/,
    license: 'MIT OR Unlicense',
    purl: 'pkg:generic/stb_vorbis@',
    single: true,
  },
];

function nativeComponents() {
  return NATIVE.map(({ name, file, version, license, purl, single }) => {
    const bytes = readFileSync(join(ROOT, WHISPER, file));
    const found = version.exec(bytes.toString('latin1'))?.slice(1).join('.');
    if (found === undefined) throw new Error(`${file} does not say which version of ${name} it is`);
    return {
      'bom-ref': `${name}@${found}`,
      type: 'library',
      name,
      version: found,
      scope: 'required',
      description: `compiled into the addon from the sources in the package nodejs-whisper (${file})`,
      purl: `${purl}${found}`,
      ...(single && {
        hashes: [{ alg: 'SHA-256', content: createHash('sha256').update(bytes).digest('hex') }],
      }),
      licenses: [license.includes(' ') ? { expression: license } : { license: { id: license } }],
    };
  });
}

/** The packages that a gateway needs to run, as `name@version`. */
function runningPackages() {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const running = Object.entries(packages).filter(([path, { dev }]) => path !== '' && !dev);
  return new Set(running.map(([path, { version }]) => `${path.replace(/^.*node_modules\//, '')}@${version}`));
}

/**
 * npm lists its packages. It knows nothing of the addon, and takes the name of the folder for that of the package. With
 * `--omit=dev` it would also leave out what both the gateway and a development tool need, so that is done here.
 */
function billOfMaterials() {
  const args = ['sbom', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const { status, stdout, stderr } = spawnSync('npm', args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) throw new Error(`npm sbom failed: ${stderr || stdout}`);
  const bom = JSON.parse(stdout);
  const running = runningPackages();
  bom.components = bom.components.filter(({ name, version }) => running.has(`${name}@${version}`));
  const runs = new Set([bom.metadata.component, ...bom.components].map((component) => component['bom-ref']));
  for (const { properties } of bom.components) properties.length = 0; // they are about the folders here
  bom.dependencies = bom.dependencies
    .filter(({ ref }) => runs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => runs.has(other)) }));
  const native = nativeComponents();
  const refs = native.map((component) => component['bom-ref']);
  const own = bom.metadata.component;
  own.name = 'voxgate';
  bom.components.push(...native);
  for (const { ref, dependsOn } of bom.dependencies) if (ref === own['bom-ref']) dependsOn.push(...refs);
  bom.dependencies.push(...refs.map((ref) => ({ ref, dependsOn: [] })));
  return bom;
}

/** The license of a component as an SPDX expression. */
function licenseOf({ licenses }) {
  return licenses.map(({ license, expression }) => expression ?? license.id ?? license.name).join(' AND ');
}

function thirdParty({ components }) {
  const rows = components
    .map((component) => `| ${component.name} | ${component.version} | ${licenseOf(component)} |`)
    .sort();
  return ['| Component | Version | License |', '| --- | --- | --- |', ...new Set(rows)].join('\n');
}

const bom = billOfMaterials();
process.stdout.write(
  `${process.argv.includes('--third-party') ? thirdParty(bom) : JSON.stringify(bom, null, 2)}\n`,
);
