/** A server that dies in a container leaves its ffmpeg to process 1, which has to reap it, as the images' tini does. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { makeTone } from '../audio-fixtures.ts';
import { form } from '../http/harness.ts';
import { SUPERVISED, serve } from '../http/served.ts';
import { until } from '../until.ts';

/** The machine may be busy, so a process gets this long for what it does in less than a second. */
const LIMIT_MS = 20_000;
const dockerfile = readFileSync(new URL('../../Dockerfile', import.meta.url), 'utf8');
const [, entry = '[]'] = /^ENTRYPOINT (.*)$/m.exec(dockerfile) ?? [];
/** A namespace of processes, in which the first one is process 1, as in a container. */
const asUser = process.getuid?.() === 0 ? [] : ['--map-root-user'];
const container = ['unshare', ...asUser, '--pid', '--fork', '--kill-child', '--mount-proc'];
const [unshare = '', ...flags] = container;
const tried = spawnSync(unshare, [...flags, 'true'], { encoding: 'utf8' });
const refusal = tried.error?.message ?? tried.stderr.trim();
const skip = tried.status !== 0 && `no namespace of processes can be made here: ${refusal}`;

function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === '' ? [] : children.split(' ').map(Number);
}

/** The name of a process and its state, such as `ffmpeg Z` for one that has ended and is not reaped. */
function stateOf(pid: number): string {
  const [, name, state] = /\((.*)\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
  return `${name} ${state}`;
}

test('the ffmpeg of a server that was killed does not stay as a zombie', { skip }, async () => {
  const command = [...container, ...JSON.parse(entry), process.execPath, ...SUPERVISED];
  await using served = await serve({}, command.slice(1), 'pipe', unshare);
  const [init = 0] = childrenOf(served.child.pid ?? 0);
  // The end of process 1 ends all of the namespace, and `unshare`, which ignores SIGTERM.
  using _end = { [Symbol.dispose]: () => process.kill(init, 'SIGKILL') };
  const [supervisor = 0] = childrenOf(init);
  const [server = 0] = childrenOf(supervisor);
  const body = form(
    readFileSync(makeTone('orphan.m4a', '-c:a', 'aac', '-af', 'aloop=loop=-1', '-t', '600')),
    {
      prompt: 'until /nonexistent',
    },
  );
  const lost = fetch(`${served.base}/v1/audio/transcriptions`, { method: 'POST', body });
  lost.catch(() => undefined);
  const isFfmpeg = (pid: number) => stateOf(pid).startsWith('ffmpeg ');
  await until('an ffmpeg decodes', () => childrenOf(server).some(isFfmpeg), LIMIT_MS);
  const [ffmpeg = 0] = childrenOf(server).filter(isFfmpeg);
  process.kill(server, 'SIGKILL');
  await assert.rejects(lost);
  const nextServer = () => childrenOf(supervisor).some((pid) => ![server, ffmpeg].includes(pid));
  await until('another server', nextServer, LIMIT_MS);
  const left = () => childrenOf(init).map(stateOf);
  await until('only the supervisor is left', () => left().length === 1, LIMIT_MS).catch((error: Error) => {
    throw new Error(`${error.message}: ${left().join(', ')}`);
  });
});
