/** What deploy/prometheus/ asks for exists, its alerts fire when they should, and each has a section that helps. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { form, post, startGateway, toneWav } from '../http/harness.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const DEPLOY = `${ROOT}deploy/prometheus/`;
const read = (name: string) => readFileSync(DEPLOY + name, 'utf8');

interface Rule {
  record?: string;
  alert?: string;
  expr: string;
  annotations?: { runbook: string };
}
const rulesOf = (name: string): Rule[] =>
  parse(read(name)).groups.flatMap(({ rules }: { rules: Rule[] }) => rules);
const alerts = rulesOf('alerts.yml');
const recorded = rulesOf('rules.yml');

function promtool(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: DEPLOY, encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
}

test('promtool takes the configuration and its rules', () => {
  promtool('check', 'config', '--lint=all', '--lint-fatal', 'prometheus.yml');
  promtool('check', 'rules', '--lint=all', '--lint-fatal', 'rules.yml', 'alerts.yml');
});

test('promtool takes the configuration for a cluster, but for the discovery that Debian has left out', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-promtool-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const config = join(folder, 'kubernetes.yml');
  const discovery = 'kubernetes_sd_configs: [{ role: pod }]';
  const text = read('kubernetes.yml');
  assert(text.includes(discovery));
  writeFileSync(config, text.replace(discovery, 'static_configs: [{ targets: ["127.0.0.1:8000"] }]'));
  promtool('check', 'config', '--syntax-only', '--lint=all', '--lint-fatal', config);
});

test('every alert fires when it should, and none of ordinary traffic', () => {
  promtool('test', 'rules', 'alerts.test.yml');
  type Case = { alertname: string; exp_alerts?: unknown[] };
  const { tests } = parse(read('alerts.test.yml'), { merge: true });
  const cases: Case[] = tests.flatMap(({ alert_rule_test }: { alert_rule_test: Case[] }) => alert_rule_test);
  const firing = cases.filter(({ exp_alerts }) => exp_alerts !== undefined);
  const silent = cases.filter(({ exp_alerts }) => exp_alerts === undefined);
  for (const { alert } of alerts)
    for (const kind of [firing, silent])
      assert(
        kind.some(({ alertname }) => alertname === alert),
        alert,
      );
});

test('every series of the gateway that a rule asks for is in /metrics, and every recorded one is recorded', async () => {
  const meant = 'http://127.0.0.1:9'; // one that is not set has no series
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: meant } });
  await (await post(gateway, form(toneWav(1)))).text();
  const text = await (await fetch(`${gateway.base}/metrics`)).text();
  const names = new Set([...text.matchAll(/^(\w+)/gm)].map(([name]) => name));
  const records = new Set(recorded.map(({ record }) => record));
  let asked = 0;
  for (const { expr } of [...alerts, ...recorded]) {
    for (const [name] of expr.matchAll(/\b(instance|job):[\w:]+/g)) assert(records.has(name), name);
    for (const [name] of expr.matchAll(/(?<![:\w])(voxgate|process|nodejs)_\w+/g)) {
      assert(names.has(name), name);
      asked += 1;
    }
  }
  assert(asked >= 7);
});

test('every alert has a section of its own that says what to do', () => {
  for (const { alert = '', annotations } of alerts) {
    const [file = '', anchor] = (annotations?.runbook ?? '').split('#');
    assert.equal(anchor, alert.toLowerCase());
    assert.match(readFileSync(ROOT + file, 'utf8'), new RegExp(`^#+ ${alert}$`, 'm'));
  }
});
