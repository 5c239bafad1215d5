/** Clients written in Python come from the package index, into an environment below build/. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { promisify } from 'node:util';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { form, post, startGateway, toneWav } from '../http/harness.ts';
import { JFK, MODEL, needsWeights, startRealGateway } from '../model/gateway.ts';
import { chatLacks, speechLacks, startChat, startSpeech } from '../upstreams/start.ts';
import { pythonBin } from './python.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const run = promisify(execFile);

let bin: string;
before(async () => {
  bin = await pythonBin();
});

test('the official OpenAI package of PyPI transcribes through the gateway', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  const script = join(ROOT, 'test/clients/openai_client.py');
  const { stdout } = await run(join(bin, 'python'), [script, gateway.base, MODEL, JFK]);
  assert.equal(stdout.trim(), 'ok');
});

test('the official OpenAI package of PyPI chats, streams and speaks through the gateway', async (t) => {
  const lacks = speechLacks() ?? chatLacks();
  if (lacks !== null) return t.skip(lacks);
  await using speech = await startSpeech();
  await using chat = await startChat();
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: speech.base, SVC_LLM_BACKEND_URL: chat.base },
  });
  const script = [
    'import sys, openai',
    'client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="none", max_retries=0)',
    'said = [{"role": "user", "content": "Hello"}]',
    'whole = client.chat.completions.create(model="tiny", messages=said, max_tokens=8)',
    'parts = client.chat.completions.create(model="tiny", messages=said, max_tokens=8, stream=True)',
    'text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)',
    'with client.audio.speech.with_streaming_response.create(model="tts", voice="alloy", input="Hello.") as speech:',
    '    audio = b"".join(speech.iter_bytes())',
    'models = {model.id for model in client.models.list()}',
    'print(len(whole.choices[0].message.content) > 0, len(text) > 0, audio[:4], {"tts", "tiny"} <= models)',
  ].join('\n');
  const { stdout } = await run(join(bin, 'python'), ['-c', script, gateway.base]);
  assert.equal(stdout.trim(), "True True b'RIFF' True");
});

test('schemathesis finds no server error and no answer outside the schema', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave((socket, head) => {
    const type = head.includes('/speech') ? 'audio/wav' : 'application/json';
    wholeAnswer('{}', '200 OK', { 'Content-Type': type })(socket, head);
  });
  const { url } = upstream;
  await using gateway = await startGateway({ env: { SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url } });
  const checks = 'not_a_server_error,response_schema_conformance,status_code_conformance';
  const args = [
    'run',
    `${gateway.base}/openapi.json`,
    '--checks',
    checks,
    '--max-examples',
    '40',
    '--request-timeout',
    '60',
    // They judge how fast and how small the generated data is, which chance and a busy machine decide.
    '--suppress-health-check',
    'all',
    '--no-color',
  ];
  const { stdout } = await run(join(bin, 'schemathesis'), args, { maxBuffer: 1e8, cwd: bin }).catch(
    (error) => {
      throw new Error(error.stdout ?? error.message);
    },
  );
  assert.match(stdout, /No issues found|passed/i);
});

test('Prometheus’s own Python parser reads /metrics', async () => {
  await using gateway = await startGateway();
  await (await post(gateway, form(toneWav(1)))).text();
  const script = [
    'import sys, urllib.request',
    'from prometheus_client.parser import text_string_to_metric_families',
    'text = urllib.request.urlopen(sys.argv[1]).read().decode()',
    'families = {family.name: family for family in text_string_to_metric_families(text)}',
    'samples = [s for s in families["voxgate_requests"].samples if s.name.endswith("_total")]',
    'print(len(families) > 20, [(s.labels["category"], s.labels["class"], s.value) for s in samples if s.value])',
  ].join('\n');
  const { stdout } = await run(join(bin, 'python'), ['-c', script, `${gateway.base}/metrics`]);
  assert.equal(stdout.trim(), "True [('asr', '2xx', 1)]");
});
