/** The code that each tab shows is run as it stands, beside a gateway with a scripted speech server and chat daemon. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { type Gateway, startGateway, toneWav } from '../http/harness.ts';
import { listening } from '../local-server.ts';
import { program } from '../program.ts';
import { joinWavs } from '../wav.ts';
import { clipboard, launchBrowser, openPage, press } from './browser.ts';

let browser: Browser;
const dir = mkdtempSync(join(tmpdir(), 'voxgate-snippets-test-'));
const run = async (command: string, args: string[]) =>
  (await promisify(execFile)(command, args, { cwd: dir, env: { ...process.env, VOXGATE_API_KEY: 'right' } }))
    .stdout;

before(async () => {
  symlinkSync(new URL('../../node_modules', import.meta.url).pathname, join(dir, 'node_modules'));
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Speech and chat in one: it speaks a second, and answers a chat with what was asked. */
async function startUpstream() {
  const asked: (Record<string, unknown> & { messages: { content: string }[] })[] = [];
  const server = createServer(async (req, res) => {
    if (req.url === '/v1/models') return void res.end('{"data":[{"id":"tiny"}]}');
    if (req.url === '/health') return void res.end('{}');
    if (req.method === 'GET') return void res.writeHead(404).end();
    const body = (await json(req)) as { messages: { content: string }[] } & Record<string, unknown>;
    asked.push(body);
    if (req.url?.startsWith('/v1/audio/speech'))
      return void res.writeHead(200, { 'Content-Type': 'audio/wav' }).end(toneWav(1));
    if (body.stream !== true)
      return void res.end(
        JSON.stringify({ choices: [{ message: { content: `You said: ${body.messages[1]?.content}` } }] }),
      );
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const content of ['You said: ', body.messages[0]?.content])
      res.write(`data: ${JSON.stringify({ choices: [{ delta: { content }, finish_reason: null }] })}\n\n`);
    res.end('data: [DONE]\n\n');
  });
  return {
    ...(await listening(server)),
    asked,
  };
}

async function openTab(gateway: Gateway, tab: string) {
  const opened = await openPage(browser, `${gateway.base}/health`);
  await opened.page.evaluate("sessionStorage.setItem('voxgate-api-key', 'right')");
  await opened.page.goto(`${gateway.base}/playground#${tab}`);
  await opened.page.getByRole('tabpanel', { name: tab }).waitFor();
  return opened;
}

async function shown(page: Page, language: string): Promise<string> {
  await page.getByLabel(language, { exact: true }).check();
  const text = (await page.locator('#code-text').textContent()) ?? '';
  assert(!text.includes('right'), 'no key is shown');
  return text;
}

async function checkPython(text: string) {
  writeFileSync(join(dir, 'snippet.py'), text);
  await run('python3', ['-c', 'import ast; ast.parse(open("snippet.py").read())']);
}

async function runNode(text: string) {
  writeFileSync(join(dir, 'snippet.mjs'), text);
  return await run(process.execPath, ['snippet.mjs']);
}

const ODD = `It's "odd": $HOME \`x\` \\n <b>@</b>`;
const gatewayWith = (base: string) =>
  startGateway({ env: { SVC_API_KEY: 'right', SVC_TTS_UPSTREAM_URL: base, SVC_LLM_BACKEND_URL: base } });

test('the code of the speech tab makes the same sound in a file', async () => {
  await using upstream = await startUpstream();
  await using gateway = await gatewayWith(upstream.base);
  await using opened = await openTab(gateway, 'speech');
  const { page } = opened;
  await page.getByRole('combobox', { name: 'Voice', exact: true }).selectOption('nova');
  await page.getByLabel('Format').selectOption('wav');
  await page.getByRole('spinbutton', { name: 'Speed' }).fill('1.25');
  await page.getByLabel('Text', { exact: true }).fill(ODD);
  await press(page, 'Copy');
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  assert.equal(await clipboard(page), await shown(page, 'curl'));
  for (const speak of [
    async () => run('sh', ['-c', await shown(page, 'curl')]),
    async () => runNode(await shown(page, 'Node')),
  ]) {
    rmSync(join(dir, 'speech.wav'), { force: true });
    await speak();
    assert.deepEqual(readFileSync(join(dir, 'speech.wav')), toneWav(1));
    assert.deepEqual(upstream.asked.at(-1), {
      model: 'tts',
      voice: 'nova',
      input: ODD,
      response_format: 'wav',
      speed: 1.25,
    });
  }
  await checkPython(await shown(page, 'Python'));
});

test('the code of the chat tab asks the message and writes the answer', async () => {
  await using upstream = await startUpstream();
  await using gateway = await gatewayWith(upstream.base);
  await using opened = await openTab(gateway, 'chat');
  const { page } = opened;
  await page.getByLabel('Message', { exact: true }).fill(ODD);
  assert.match(await run('sh', ['-c', await shown(page, 'curl')]), /"content":"You said: "/);
  assert.equal(await runNode(await shown(page, 'Node')), `You said: ${ODD}\n`);
  assert.deepEqual(
    upstream.asked.map(({ model, messages, stream }) => ({ model, messages, stream })),
    Array(2).fill({ model: 'tiny', messages: [{ role: 'user', content: ODD }], stream: true }),
  );
  await checkPython(await shown(page, 'Python'));
});

test('the code of the live tab writes what is said while it is said', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'right' } });
  await using opened = await openTab(gateway, 'live');
  const { page } = opened;
  writeFileSync(join(dir, 'live.wav'), joinWavs(toneWav(1.5), toneWav(1.5, 0)));
  await run('ffmpeg', ['-loglevel', 'error', '-y', '-i', 'live.wav', 'speech.mp3']);
  await page.getByLabel('Language', { exact: true }).selectOption('en');

  const node = await shown(page, 'Node');
  const convert = /^\/\/ (ffmpeg .*)$/m.exec(node)?.[1] ?? '';
  await run('sh', ['-c', convert]);
  writeFileSync(join(dir, 'live.mjs'), node);
  const child = spawn(process.execPath, ['live.mjs'], {
    cwd: dir,
    env: { ...process.env, VOXGATE_API_KEY: 'right' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [said] = await once(child.stdout, 'data');
  child.kill();
  assert.match(String(said), /^Hello there\.\n$/);

  const command = await shown(page, 'voxgate');
  const args = /^npx voxgate (.*)$/m.exec(command)?.[1]?.split(' ') ?? [];
  assert.deepEqual(args, ['live', '--url', gateway.base, '--language', 'en', 'speech.mp3']);
  const env = { ...process.env, SVC_API_KEY: 'right' };
  const { stdout } = await promisify(execFile)(process.execPath, [...program('src/main.ts'), ...args], {
    cwd: dir,
    env,
  });
  assert.match(stdout, /Hello there\./);
  await checkPython(await shown(page, 'Python'));
});

test('the code of the voice tab says something, and has the answer as text and sound', async () => {
  await using upstream = await startUpstream();
  await using gateway = await gatewayWith(upstream.base);
  await using opened = await openTab(gateway, 'voice');
  const { page } = opened;
  await page.getByText('Instructions and tools').click();
  await page.getByLabel('Instructions for the model').fill(ODD);
  writeFileSync(join(dir, 'question.wav'), joinWavs(toneWav(1.5), toneWav(0.5, 0)));
  await run('ffmpeg', ['-loglevel', 'error', '-y', '-i', 'question.wav', 'question.mp3']);

  const node = await shown(page, 'Node');
  await run('sh', ['-c', /^\/\/ (ffmpeg .*)$/m.exec(node)?.[1] ?? '']);
  assert.equal(await runNode(node), `Hello there.\nYou said: ${ODD}`);
  assert.equal(readFileSync(join(dir, 'answer.pcm')).length % 48_000, 0, 'whole seconds of sound');
  assert.equal(upstream.asked[0]?.messages[1]?.content, 'Hello there.');

  assert.equal(await run('sh', ['-c', await shown(page, 'curl')]), 'Hello there.\nYou said: Hello there.\n');
  assert.equal(upstream.asked.at(-2)?.messages[0]?.content, ODD);
  assert.deepEqual(readFileSync(join(dir, 'answer.wav')), toneWav(1));
  await checkPython(await shown(page, 'Python'));
});
