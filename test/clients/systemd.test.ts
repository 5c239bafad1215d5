/** systemd takes deploy/voxgate.service, and the service is kept from what it does not need. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

const UNIT = new URL('../../deploy/voxgate.service', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'voxgate-unit-'));
const unit = join(folder, 'voxgate.service');
// The check of a unit wants its program, which is not installed here.
writeFileSync(unit, readFileSync(UNIT, 'utf8').replace('ExecStart=voxgate', `ExecStart=${process.execPath}`));
after(() => rmSync(folder, { recursive: true }));

function analyze(...args: string[]) {
  return spawnSync('systemd-analyze', [...args, unit], { encoding: 'utf8' });
}

test('systemd finds no mistake in the unit', () => {
  const { status, stdout, stderr } = analyze('verify', '--man=no');
  assert.equal(stdout + stderr, '');
  assert.equal(status, 0);
});

test('systemd rates the exposure of the service below 2 of 10', () => {
  const { status, stdout, stderr } = analyze('security', '--offline=true', '--no-pager', '--threshold=19');
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /Overall exposure level for voxgate\.service: [01]\.\d/);
});
