/** The requests of Open WebUI and n8n, as their code makes them, with the settings that docs/clients.md gives. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { pythonBin } from '../clients/python.ts';
import { JFK, JFK_TEXT, needsWeights, plain, startRealGateway } from '../model/gateway.ts';
import { speechLacks, startSpeech, type Upstream } from '../upstreams/start.ts';
import { codeBlocks } from './document-commands.ts';

const page = readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8');

/** The settings of a section, by their names, for a gateway at another address. */
function settingsOf(section: string, base: string): Record<string, string> {
  const block = codeBlocks(page).find((one) => one.section === section && one.language === 'ini');
  const code = block?.code ?? '';
  assert(code.includes('http://127.0.0.1:8000'), section);
  const lines = code.replaceAll('http://127.0.0.1:8000', base).trim().split('\n');
  return Object.fromEntries(lines.map((line) => line.split(/=(.*)/).slice(0, 2)));
}

const dir = mkdtempSync(join(tmpdir(), 'voxgate-recorded-requests-'));
const lacks = speechLacks();
let speech: Upstream | undefined;
let python: string;
before(async () => {
  python = join(await pythonBin('frameworks'), 'python');
  if (lacks === null) speech = await startSpeech();
});
after(async () => {
  await speech?.stop();
  rmSync(dir, { recursive: true, force: true });
});

test('Open WebUI transcribes, lists models and speaks with its settings', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway({}, { SVC_TTS_UPSTREAM_URL: speech?.base ?? '' });
  const recording = join(dir, '0f6c1f2e-5c0e-4b57-8d7a-3a9d9e2b7c11.mp3');
  cpSync(JFK, recording);
  const client = new URL('../clients/open_webui_client.py', import.meta.url).pathname;
  const env = { ...process.env, ...settingsOf('Open WebUI', gateway.base) };
  const { stdout } = await promisify(execFile)(python, [client, recording], { env });
  const [text, models, voicesStatus, type, length] = JSON.parse(stdout);
  assert.equal(plain(text), plain(JFK_TEXT));
  assert(models.includes('tts') && models.includes('auto'), models);
  assert.deepEqual([voicesStatus, type], [200, 'audio/wav']);
  assert(length > 1000);
});

/**
 * Sends what n8n 2.41 sends: the action's form (nodes/vendors/OpenAi/v2/actions/audio/ of
 * `@n8n/n8n-nodes-langchain` 2.41.1) as the package `form-data` writes it, and the headers of the credential
 * (credentials/OpenAiApi.credentials.js of `n8n-nodes-base` 2.41.1).
 */
async function askAsN8n(
  settings: Record<string, string>,
  path: string,
  body?: string | Buffer,
  type?: string,
) {
  const response = await fetch(`${settings['Base URL']}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      Authorization: `Bearer ${settings['API Key']}`,
      'OpenAI-Organization': '',
      Accept: 'application/json',
      'User-Agent': 'n8n',
      ...(type === undefined ? {} : { 'Content-Type': type }),
    },
    ...(body === undefined ? {} : { body: Uint8Array.from(Buffer.from(body)) }),
  });
  assert.equal(response.status, 200, path);
  return response;
}

test('n8n tests its credential, transcribes, translates and speaks with its settings', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway({}, { SVC_TTS_UPSTREAM_URL: speech?.base ?? '' });
  const settings = settingsOf('n8n', gateway.base);
  const boundary = '--------------------------350427161843271540987154';
  const part = (header: string, value: string | Buffer) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${header}\r\n\r\n`),
    Buffer.from(value),
    Buffer.from('\r\n'),
  ];
  const form = (fields: Record<string, string>) =>
    Buffer.concat([
      ...Object.entries(fields).flatMap(([name, value]) => part(`name="${name}"`, value)),
      ...part('name="file"; filename="Grüße an alle.mp3"\r\nContent-Type: audio/mpeg', readFileSync(JFK)),
      Buffer.from(`--${boundary}--\r\n`),
    ]);
  const multipart = `multipart/form-data; boundary=${boundary}`;

  await askAsN8n(settings, '/models');
  for (const [path, fields] of [
    ['/audio/transcriptions', { model: 'whisper-1' }],
    ['/audio/transcriptions', { model: 'whisper-1', language: 'en', temperature: '0.2' }],
    ['/audio/translations', { model: 'whisper-1' }],
  ] as const) {
    const answer = await askAsN8n(settings, path, form(fields), multipart);
    const { text } = (await answer.json()) as { text: string };
    assert.match(plain(text), /ask not what your country can do for you/, JSON.stringify(fields));
  }
  const spoken = { model: 'tts-1', input: 'Hello.', voice: 'alloy', response_format: 'mp3', speed: 1 };
  const audio = await askAsN8n(settings, '/audio/speech', JSON.stringify(spoken), 'application/json');
  assert((await audio.arrayBuffer()).byteLength > 1000);
});
