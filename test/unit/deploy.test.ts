/** The files that a gateway is deployed with agree with each other, with the settings, and with what npm ships. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { readConfig } from '../../src/config/config.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { listening } from '../local-server.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const yaml = (path: string) => parse(read(path));
const manifest = (name: string) => yaml(`deploy/kubernetes/${name}.yaml`);
const FOR_GPUS = ['Dockerfile.cuda', 'Dockerfile.vulkan'];
const GIB = 1024 ** 3;

/** The lines that an image is run by. */
const runTimeLines = (dockerfile: string) => /^ENV NODE_ENV.*/ms.exec(read(dockerfile))?.[0];
/** What an instruction of the last stage says, with its continued lines. */
const ofImage = (name: string) =>
  new RegExp(`^${name} ((?:.*\\\\\\n)*.*)`, 'm').exec(runTimeLines('Dockerfile') ?? '')?.[1] ?? '';
/** `A=1 B=2` as an object; no value has spaces. */
const pairsOf = (pairs: string): Record<string, string> =>
  Object.fromEntries([...pairs.matchAll(/(\w+)=(\S*)/g)].map(([, name, value]) => [name, value]));

const pod = manifest('deployment').spec.template.spec;
const [container] = pod.containers;
const { services } = yaml('deploy/compose.yaml');
const unit = read('deploy/voxgate.service');

type Variable = { name: string; value?: string };
/** The environment of each way to run a gateway, with a key. */
const ENVIRONMENTS: Record<string, NodeJS.ProcessEnv> = {
  kubernetes: {
    ...pairsOf(ofImage('ENV')),
    ...Object.fromEntries(container.env.map(({ name, value = 'a-key' }: Variable) => [name, value])),
  },
  compose: {
    ...pairsOf(ofImage('ENV')),
    ...Object.fromEntries(
      Object.entries(services.voxgate.environment).map(([name, value]) => [
        name,
        `${value}`.replace(/^\$\{\w+:-\}$/, 'a-key'),
      ]),
    ),
  },
  systemd: Object.fromEntries(
    [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, pairs = '']) =>
      Object.entries(
        pairsOf(
          pairs.replaceAll('%S', '/var/lib').replaceAll('%C', '/var/cache').replaceAll('%L', '/var/log'),
        ),
      ),
    ),
  ),
};
const configOf = (way: string) => readConfig(ENVIRONMENTS[way]).config;

test('the settings of all deployments are known, and a gateway with a key starts with them', () => {
  for (const [way, env] of Object.entries(ENVIRONMENTS)) {
    assert(Object.keys(env).filter((name) => name.startsWith('SVC_')).length > 4, way);
    const unknown = readConfig(env).warnings.filter((warning) => /is not a setting|unknown/i.test(warning));
    assert.deepEqual(unknown, [], way);
  }
});

test('the images for GPUs are run like the one for the CPU', () => {
  assert(runTimeLines('Dockerfile'));
  for (const dockerfile of FOR_GPUS) assert.equal(runTimeLines(dockerfile), runTimeLines('Dockerfile'));
});

test('the health check of an image asks where the gateway listens: at a port or a Unix socket', async () => {
  const [, check = ''] = /CMD (\[.*\])$/.exec(ofImage('HEALTHCHECK')) ?? [];
  const [command, ...args] = JSON.parse(check);
  const status = async (env: NodeJS.ProcessEnv) => {
    const [code] = await once(execFile(command, args, { env: { ...process.env, ...env } }), 'exit');
    return code;
  };
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-health-'));
  const path = join(dir, 'http.sock');
  let isReady = true;
  const server = () =>
    createServer((req, res) => res.writeHead(isReady && req.url === '/ready' ? 200 : 503).end());
  const atSocket = server().listen(path);
  try {
    await using atPort = await listening(server());
    const port = { SVC_HOST: '0.0.0.0', SVC_PORT: String(atPort.port) };
    const socket = { SVC_HOST: `unix:${path}`, SVC_PORT: '1' };
    assert.deepEqual([await status(port), await status(socket)], [0, 0]);
    isReady = false;
    assert.deepEqual([await status(port), await status(socket)], [1, 1]);
    assert.equal(await status({ ...port, SVC_PORT: '1' }), 1, 'nothing listens there');
  } finally {
    atSocket.close();
    rmSync(dir, { recursive: true });
  }
});

test('process 1 of a container is an init that reaps, and no deployment replaces it', () => {
  assert.deepEqual(JSON.parse(ofImage('ENTRYPOINT')), ['/usr/bin/tini', '-s', '--']);
  assert.match(read('deploy/image.sh'), /^run-time\)\n(?:.*\n)*? +install_packages .*\btini\b/m);
  assert.equal(container.command, undefined);
  assert.equal(services.voxgate.entrypoint, undefined);
  assert.equal(services.voxgate.init, true);
});

test('the manifests run the version of this tree', () => {
  assert.equal(container.image, `voxgate:${JSON.parse(read('package.json')).version}`);
});

test('containers have longer to stop than the gateway takes', () => {
  const LONGEST_STOP_SEC = 30 + 12; // SVC_DRAIN_SEC, and the grace after it
  assert(Number.parseInt(services.voxgate.stop_grace_period, 10) > LONGEST_STOP_SEC);
  const hookSec = Number(container.lifecycle.preStop.exec.command[1]);
  assert(pod.terminationGracePeriodSeconds > LONGEST_STOP_SEC + hookSec);
});

const bytesOf = (size: string) => Number.parseFloat(size) * (size.endsWith('Gi') ? GIB : Number.NaN);

test('each volume of a pod holds what the settings let the gateway write there', () => {
  const config = configOf('kubernetes');
  const { kept, lines, lineLength, messageLength } = BUDGETS.crashes;
  const { logDir, logMaxBytes, payloadDir, payloadMaxBytes } = config.observability;
  const written: [folder: string, bytes: number][] = [
    [config.tmpDir, config.maxSpoolBytes],
    [payloadDir, payloadMaxBytes],
    [logDir, logMaxBytes],
    [config.crashDir, kept * (lines * lineLength + messageLength) * 4],
  ];
  type Mount = { name: string; mountPath: string };
  const mountOf = (folder: string): string => {
    const around = container.volumeMounts.filter(({ mountPath }: Mount) =>
      `${folder}/`.startsWith(`${mountPath}/`),
    );
    return around.sort((a: Mount, b: Mount) => b.mountPath.length - a.mountPath.length)[0]?.name;
  };
  const needs = new Map<string, number>();
  for (const [folder, bytes] of written)
    needs.set(mountOf(folder), (needs.get(mountOf(folder)) ?? 0) + bytes);
  let disk = 0;
  for (const { name, emptyDir } of pod.volumes) {
    if (emptyDir === undefined) continue;
    const size = bytesOf(emptyDir.sizeLimit);
    disk += size;
    const need = needs.get(name) ?? 0;
    needs.delete(name);
    assert(size > need, `${name}: ${size / GIB} GiB for ${need / GIB} GiB`);
  }
  assert.deepEqual([...needs.keys()], [], 'everything else is read-only');
  assert(bytesOf(container.resources.requests['ephemeral-storage']) >= disk, 'the node has that much disk');
  const models = pod.volumes.find(({ name }: Mount) => name === mountOf(config.modelDir));
  assert.equal(models.persistentVolumeClaim.claimName, manifest('models').metadata.name);
});

interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values: string[] }[];
}
interface Peer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}

/** Whether a selector takes labels, as Kubernetes has it: an empty one takes all. */
function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Record<string, string>) {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      assert.equal(operator, 'In', 'the test knows no other');
      return values.includes(labels[key] ?? '');
    })
  );
}

/** Whether a peer is a pod without labels of that namespace; the policy and the gateway are in `speech`. */
function isPodOf(namespace: string, { podSelector = {}, namespaceSelector, ipBlock }: Peer): boolean {
  if (ipBlock !== undefined || !selects(podSelector, {})) return false;
  if (namespaceSelector === undefined) return namespace === 'speech';
  return selects(namespaceSelector, { 'kubernetes.io/metadata.name': namespace });
}

const { spec: policy } = manifest('network');
const admits = (namespace: string) =>
  policy.ingress.some(
    ({ from, ports }: { from: Peer[]; ports: { port: string }[] }) =>
      from.some((peer) => isPodOf(namespace, peer)) && ports.some(({ port }) => port === 'http'),
  );

test('the network policy is that of the pods, and is about the port that they and the service have', () => {
  const { labels } = manifest('deployment').spec.template.metadata;
  assert(selects(policy.podSelector, labels));
  assert(selects({ matchLabels: manifest('service').spec.selector }, labels));
  assert.equal(manifest('service').spec.ports[0].targetPort, 'http');
  assert.deepEqual(container.ports, [{ name: 'http', containerPort: configOf('kubernetes').port }]);
});

test('the network policy admits all that a manifest or the page names, and no other namespace', () => {
  const [, prometheus = ''] =
    /^http:\/\/[\w-]+\.([\w-]+)\.svc$/.exec(yaml('deploy/prometheus/adapter.yaml').prometheus.url) ?? [];
  assert.notEqual(prometheus, '');
  const [, list = ''] = /admits the namespaces(.*?), and pods/s.exec(read('docs/operations.md')) ?? [];
  const documented = [...list.matchAll(/`([\w-]+)`/g)].map(([, name]) => name ?? '');
  assert(documented.length > 1, 'the page names the namespaces');
  for (const namespace of ['speech', prometheus, ...documented]) assert(admits(namespace), namespace);
  for (const namespace of ['default', 'kube-system']) assert(!admits(namespace), namespace);
});

test('the network policy lets the gateway look up names, reach upstreams beside it, and download', () => {
  type Rule = { to?: Peer[]; ports?: { port: number }[] };
  const rules: Rule[] = policy.egress;
  assert(rules.some(({ to, ports }) => to === undefined && ports?.some(({ port }) => port === 53)));
  assert(rules.some(({ to, ports }) => to?.some((peer) => isPodOf('speech', peer)) && ports === undefined));
  const outside = rules.find(({ to }) => to?.some(({ ipBlock }) => ipBlock?.cidr === '0.0.0.0/0'));
  assert.deepEqual(outside?.ports, [{ port: 443 }]);
});

test('the autoscaler asks for a metric that the adapter computes from one of the gateway', () => {
  const { metrics } = manifest('autoscaler').spec;
  const [rule] = yaml('deploy/prometheus/adapter.yaml').rules.custom;
  assert.equal(metrics[0].pods.metric.name, rule.name.as);
  const [series = ''] = rule.seriesQuery.split('{');
  assert.match(read('src/observability/prometheus.ts'), new RegExp(`name: '${series}'`));
});

test('Prometheus finds the pods in a cluster, and gives them the labels that the adapter asks for', () => {
  const [{ relabel_configs: relabel }] = yaml('deploy/prometheus/kubernetes.yml').scrape_configs;
  const [keep, ...labels] = relabel;
  const { labels: ofPod } = manifest('deployment').spec.template.metadata;
  assert.deepEqual(keep.source_labels, [
    '__meta_kubernetes_pod_label_app_kubernetes_io_name',
    '__meta_kubernetes_pod_container_port_name',
  ]);
  assert.equal(keep.regex, `${ofPod['app.kubernetes.io/name']};${container.ports[0].name}`);
  const [rule] = yaml('deploy/prometheus/adapter.yaml').rules.custom;
  assert.deepEqual(
    labels.map(({ target_label }: { target_label: string }) => target_label),
    Object.keys(rule.resources.overrides),
  );
});

test('the unit starts a program that npm installs, and writes to folders that systemd makes on a disk', () => {
  const set = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];
  const { bin } = JSON.parse(read('package.json'));
  assert.match(read('src/main.ts'), /^#!\/usr\/bin\/env -S node /);
  assert(Object.keys(bin).includes(set('ExecStart')?.split(' ')[0] ?? ''));
  assert.equal(set('WorkingDirectory'), undefined);
  const { tmpDir, modelDir, crashDir, observability } = configOf('systemd');
  const made = [
    `/var/lib/${set('StateDirectory')}`,
    `/var/cache/${set('CacheDirectory')}`,
    `/var/log/${set('LogsDirectory')}`,
  ];
  for (const folder of [tmpDir, modelDir, crashDir, observability.logDir, observability.payloadDir])
    assert(
      made.some((path) => `${folder}/`.startsWith(`${path}/`)),
      folder,
    );
});

test('compose opens the ports that it sets, and fetches a model into the daemon that it asks', () => {
  const { port, wyomingPort, llm, tts } = configOf('compose');
  assert.deepEqual(
    services.voxgate.ports,
    [port, wyomingPort].map((open) => `127.0.0.1:${open}:${open}`),
  );
  for (const { url } of [llm, tts]) assert(new URL(url).hostname in services, url);
  const { command, depends_on, environment, image } = services['chat-model'];
  assert.equal(command[0], 'pull');
  assert.equal(`http://${environment.OLLAMA_HOST}`, llm.url);
  assert.deepEqual(depends_on, { chat: { condition: 'service_healthy' } });
  assert.equal(image, services.chat.image);
  assert(services.chat.healthcheck.test.length > 0);
});

test('the compose file for GPUs gives one to services of the other file, and builds the image for it', () => {
  type Service = { deploy: { resources: { reservations: { devices: { capabilities: string[] }[] } } } };
  const { services: onGpu } = yaml('deploy/compose.gpu.yaml');
  const { context, dockerfile } = onGpu.voxgate.build;
  assert(FOR_GPUS.map((name) => join(ROOT, name)).includes(join(ROOT, 'deploy', context, dockerfile)));
  for (const [name, { deploy }] of Object.entries<Service>(onGpu)) {
    assert(name in services, name);
    assert.deepEqual(deploy.resources.reservations.devices[0]?.capabilities, ['gpu'], name);
  }
});

test('the package of npm has the files of deploy/ that the pages name', () => {
  const said = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [pack] = Object.values<{ files: { path: string }[] }>(JSON.parse(said));
  const shipped = pack?.files.map(({ path }) => path) ?? [];
  const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];
  const named = pages
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) => [...read(path).matchAll(/\bdeploy\/[\w./-]*[\w/]/g)].map(([name]) => name));
  assert(new Set(named).size > 6);
  for (const name of named)
    assert(
      shipped.some((path) => path === name || (name.endsWith('/') && path.startsWith(name))),
      name,
    );
});
