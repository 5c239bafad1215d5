/** Linters and validators take the Dockerfiles, the compose files and the manifests. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { pythonBin } from './python.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const KUBERNETES = 'deploy/kubernetes';
const manifests = readdirSync(join(ROOT, KUBERNETES)).map((name) => `${KUBERNETES}/${name}`);

let bin: string;
before(async () => {
  bin = await pythonBin();
});

/** @returns what the program says, after it has ended with `expected` */
function run(expected: number, program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(join(bin, program), args, { cwd: ROOT, encoding: 'utf8' });
  assert.equal(status, expected, stdout + stderr);
  return stdout + stderr;
}

test('hadolint finds nothing in the Dockerfiles', () => {
  assert.equal(run(0, 'hadolint', 'Dockerfile', 'Dockerfile.cuda', 'Dockerfile.vulkan'), '');
});

test('every manifest has the schema of Kubernetes 1.30 and of the newest version that the validator knows', () => {
  assert(manifests.length > 4);
  for (const version of [['--kubernetes-version', '1.30'], []])
    run(0, 'kubernetes-validate', '--strict', ...version, ...manifests);
});

test('the compose files have the schema of the Compose Specification, and what they refer to exists', () => {
  const script =
    'import sys, compose_spec; compose_spec.PyCompose.from_yaml(open(sys.argv[1]).read()).validate()';
  for (const name of ['compose.yaml', 'compose.gpu.yaml']) run(0, 'python', '-c', script, `deploy/${name}`);
});
