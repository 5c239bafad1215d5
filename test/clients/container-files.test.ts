/** Linters and validators take the Dockerfiles, the compose file and the manifests, and these fit one another. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { parse } from 'yaml';
import { pythonBin } from './python.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const KUBERNETES = 'deploy/kubernetes';
const manifests = readdirSync(join(ROOT, KUBERNETES)).map((name) => `${KUBERNETES}/${name}`);
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
/** The lines that an image is run by. */
const runTimeLines = (dockerfile: string) => /^ENV NODE_ENV.*/ms.exec(read(dockerfile))?.[0];

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

const FOR_GPUS = ['Dockerfile.cuda', 'Dockerfile.vulkan'];

test('hadolint finds nothing in the Dockerfiles', () => {
  assert.equal(run(0, 'hadolint', 'Dockerfile', ...FOR_GPUS), '');
});

test('the images for GPUs are run like the one for the CPU', () => {
  assert(runTimeLines('Dockerfile'));
  for (const dockerfile of FOR_GPUS) assert.equal(runTimeLines(dockerfile), runTimeLines('Dockerfile'));
});

test('every manifest has the schema of Kubernetes 1.30 and of the newest version that the validator knows', () => {
  assert(manifests.length > 4);
  for (const version of [['--kubernetes-version', '1.30'], []])
    run(0, 'kubernetes-validate', '--strict', ...version, ...manifests);
});

test('the compose file has the schema of the Compose Specification, and what it refers to exists', () => {
  const script =
    'import sys, compose_spec; compose_spec.PyCompose.from_yaml(open(sys.argv[1]).read()).validate()';
  run(0, 'python', '-c', script, 'deploy/compose.yaml');
});

test('the manifests run the version of this tree', () => {
  const { version } = JSON.parse(read('package.json'));
  const pod = parse(read(`${KUBERNETES}/deployment.yaml`)).spec.template.spec;
  assert.equal(pod.containers[0].image, `voxgate:${version}`);
});

test('containers have longer to stop than the gateway takes', () => {
  const { services } = parse(read('deploy/compose.yaml'));
  const pod = parse(read(`${KUBERNETES}/deployment.yaml`)).spec.template.spec;
  const [{ lifecycle }] = pod.containers;
  const LONGEST_STOP_SEC = 30 + 12; // SVC_DRAIN_SEC, and the grace after it
  assert(Number.parseInt(services.voxgate.stop_grace_period, 10) > LONGEST_STOP_SEC);
  const hookSec = Number(lifecycle.preStop.exec.command[1]);
  assert(pod.terminationGracePeriodSeconds > LONGEST_STOP_SEC + hookSec);
});

test('the autoscaler asks for a metric that the adapter computes from one of the gateway', () => {
  const { metrics } = parse(read(`${KUBERNETES}/autoscaler.yaml`)).spec;
  const [rule] = parse(read('deploy/prometheus/adapter.yaml')).rules.custom;
  assert.equal(metrics[0].pods.metric.name, rule.name.as);
  const [series = ''] = rule.seriesQuery.split('{');
  assert.match(read('src/observability/prometheus.ts'), new RegExp(`name: '${series}'`));
});
