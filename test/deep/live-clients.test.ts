/** Frameworks of voice agents hear real speech live, over the gateway as it is built. Their packages have 0.8 GB. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { pythonBin } from '../clients/python.ts';
import { type Served, serve } from '../http/served.ts';
import { listening } from '../local-server.ts';
import { JFK, MODEL, needsWeights, plain } from '../model/gateway.ts';
import { until } from '../until.ts';

const dir = mkdtempSync(join(tmpdir(), 'voxgate-live-clients-'));
const SPEECH = join(dir, 'speech.s16le');
const KEY = 'right';
const LIMIT_MS = 180_000;
/** The words that every way of cutting the clip into utterances leaves alone. */
const SAID = /fellow americans .*your country can do for you .*you can do for your country/;

let bin: string;
before(async () => {
  bin = await pythonBin('deep');
  // The silence at the end lets the voice activity of the client and of the gateway find the end.
  const raw = ['-f', 's16le', '-ac', '1', '-ar', '16000', '-af', 'apad=pad_dur=3'];
  execFileSync('ffmpeg', ['-v', 'error', '-i', JFK, ...raw, SPEECH]);
});
after(() => rmSync(dir, { recursive: true, force: true }));

interface Shown {
  type: string;
  text?: string;
  language?: string;
}

/** Runs a client, which speaks the clip once for each call of `speak`. */
function startClient(script: string, args: readonly string[]) {
  const path = new URL(script, import.meta.url).pathname;
  const child = spawn(join(bin, 'python'), [path, ...args]);
  let [out, problems] = ['', ''];
  child.stdout.on('data', (data) => (out += data));
  child.stderr.on('data', (data) => (problems += data));
  const ended = new Promise((resolve) => child.once('close', resolve));
  const seen = (): Shown[] =>
    out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  return {
    seen,
    of: (type: string) => seen().filter((event) => event.type === type),
    speak: () => void child.stdin.write('\n'),
    async until(what: string, condition: () => boolean) {
      await until(what, condition, LIMIT_MS).catch((error: Error) => {
        throw new Error(`${error.message}\n${out}\n${problems.slice(-3000)}`);
      });
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      const patience = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(patience);
    },
  };
}

const serveWithKey = (): Promise<Served> => serve({ SVC_API_KEY: KEY });
const live = ({ port }: Pick<Served, 'port'>) => `ws://127.0.0.1:${port}/v1/realtime`;
const joined = (events: Shown[]) => plain(events.map(({ text }) => text).join(' '));

for (const turns of ['server', 'local'])
  test(`pipecat hears speech live, with the turns of the ${turns} side`, async (t) => {
    if (!needsWeights(t)) return;
    await using gateway = await serveWithKey();
    await using client = startClient('pipecat_client.py', [live(gateway), KEY, MODEL, SPEECH, turns]);
    client.speak();
    await client.until('it has the text', () => SAID.test(joined(client.of('final'))));
    assert(client.of('interim').length > 0);
    assert.deepEqual(client.of('error'), []);
  });

test('pipecat connects again after a restart of the gateway, and hears on', async (t) => {
  if (!needsWeights(t)) return;
  await using first = await serveWithKey();
  await using second = await serveWithKey();
  await using address = await moving(first.port);
  await using client = startClient('pipecat_client.py', [live(address), KEY, MODEL, SPEECH, 'server']);
  client.speak();
  await client.until('it has a text', () => SAID.test(joined(client.of('final'))));
  address.moveTo(second.port);
  first.child.kill('SIGTERM');
  await client.until('it is connected again', () => client.of('connected').length === 2);
  const before = client.of('final').length;
  client.speak();
  await client.until('it has another text', () => SAID.test(joined(client.of('final').slice(before))));
});

/** An address behind which a gateway takes the place of another, as after a restart that takes no time. */
async function moving(first: number) {
  let to = first;
  const server = createServer((client) => {
    const gateway = connect(to, '127.0.0.1');
    for (const socket of [client, gateway]) socket.on('error', () => socket.destroy());
    client.pipe(gateway).pipe(client);
  });
  return {
    ...(await listening(server)),
    moveTo(port: number) {
      to = port;
    },
  };
}

for (const [how, model] of [
  ['with the turns of the gateway', MODEL],
  // These models of OpenAI detect no turns, so the plugin brings its own voice activity and commits.
  ['with its own turns', 'gpt-live-transcribe'],
] as const)
  test(`LiveKit’s agents hear speech live, ${how}`, async (t) => {
    if (!needsWeights(t)) return;
    await using gateway = await serveWithKey();
    await using client = startClient('livekit_client.py', [`${gateway.base}/v1`, KEY, model, SPEECH]);
    client.speak();
    const finals = () => client.of('final_transcript');
    await client.until('it has the text', () => SAID.test(joined(finals())));
    assert(finals().every(({ language }) => language === 'en'));
    assert(client.of('interim_transcript').length > 0);
    for (const type of ['start_of_speech', 'end_of_speech']) assert(client.of(type).length > 0, type);
    assert.deepEqual(client.of('error'), []);
  });

test('a wrong key and a model that is not there are errors that name their reason in every client', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await serveWithKey();
  for (const [key, model, pipecat, livekit] of [
    ['wrong', MODEL, /HTTP 401/, /401|Invalid response status/],
    [KEY, 'nonsense', /nonsense/, /400|Invalid response status/],
  ] as const) {
    await using agent = startClient('pipecat_client.py', [live(gateway), key, model, SPEECH, 'server']);
    await agent.until('pipecat says why', () =>
      agent.of('error').some(({ text = '' }) => pipecat.test(text)),
    );
    await using plugin = startClient('livekit_client.py', [`${gateway.base}/v1`, key, model, SPEECH]);
    await plugin.until('the plugin says why', () =>
      plugin.of('error').some(({ text = '' }) => livekit.test(text)),
    );
  }
});
