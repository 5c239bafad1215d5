/** systemd takes deploy/voxgate.service, and the service is kept from what it does not need. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { childOf, SUPERVISED, serve } from '../http/served.ts';
import { until } from '../until.ts';

const LIMIT_MS = 20_000;
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

/** Prints what comes to a socket of datagrams, as systemd opens it for a service. */
const LISTEN = `import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True: print(s.recv(4096).decode().replace("\\n", " "), flush=True)`;

test('systemd hears of a server that lives, and nothing while its event loop stands still', async (t) => {
  const socket = join(folder, 'notify');
  const systemd = spawn('python3', ['-c', LISTEN, socket], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => systemd.kill('SIGKILL'));
  let heard = '';
  systemd.stdout.on('data', (data) => (heard += data));
  await until('it listens', () => existsSync(socket), LIMIT_MS);
  const messages = () => heard.match(/^READY=1 WATCHDOG=1$/gm)?.length ?? 0;
  await using served = await serve({ NOTIFY_SOCKET: socket, WATCHDOG_USEC: '3000000' }, SUPERVISED);
  await until('three messages', () => messages() >= 3, LIMIT_MS);
  const server = childOf(served.child.pid ?? 0);
  process.kill(server, 'SIGSTOP');
  let last = messages();
  let since = performance.now();
  await until(
    'systemd would have ended the service',
    () => {
      if (messages() > last) since = performance.now(); // a message that was under way
      last = messages();
      return performance.now() - since > 3000;
    },
    LIMIT_MS,
  );
  process.kill(server, 'SIGCONT');
  await until('it lives', () => messages() >= last + 2, LIMIT_MS);
  assert.equal(childOf(served.child.pid ?? 0), server, served.log());
});
