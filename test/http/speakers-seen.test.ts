/** What the operator sees of speakers, and that the voices are not in it. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { withoutVoices } from '../../src/capture/capture.ts';
import { GatewayError } from '../../src/errors.ts';
import { modelEntrySchema } from '../../src/http/openapi/openapi.ts';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { wav } from '../wav.ts';
import { form, type Gateway, heard, json, post, startGateway, until } from './harness.ts';

const CALL = wav(conversation(inTurns(2, 12), 12));
const VOICE = wav(conversation([{ speaker: 1, start: 0, end: 3 }], 3)).toString('base64');

function ask(gateway: Gateway, id: string, fields: Record<string, string>): Promise<Response> {
  return post(gateway, form(CALL, { response_format: 'verbose_json', diarize: 'true', ...fields }), {
    headers: { 'X-Request-ID': id },
  });
}

const known = {
  'known_speaker_names[]': 'Anna',
  'known_speaker_references[]': `data:audio/wav;base64,${VOICE}`,
};

test('metrics, log and dashboard count requests with speakers, those found, and the time it took', async () => {
  await using gateway = await startGateway({ speakers: scriptedVoices() });
  await (await ask(gateway, 'plain', { diarize: 'false' })).text();
  assert.equal((await ask(gateway, 'told', {})).status, 200);
  await until('it is counted', () => gateway.exchanges.length === 2);
  const [plain, told] = gateway.exchanges;
  assert.deepEqual([plain?.speakers, plain?.diarizationSec], [undefined, undefined]);
  assert.equal(told?.speakers, 2);
  assert((told?.diarizationSec ?? -1) >= 0 && (told?.diarizationSec ?? 99) <= (told?.latencyMs ?? 0) / 1000);

  const prometheus = await (await fetch(`${gateway.base}/metrics`)).text();
  assert.match(prometheus, /\nvoxgate_speakers_sum 2\nvoxgate_speakers_count 1\n/);
  assert.match(prometheus, /\nvoxgate_diarization_seconds_count 1\n/);
  const { asr } = (await json(await fetch(`${gateway.base}/admin/api/metrics`))).categories;
  assert.equal(asr.diarized, 1);
  assert.deepEqual([asr.recent[0].speakers, 'speakers' in asr.recent[1]], [2, false]);
  const dashboard = await (await fetch(`${gateway.base}/admin/fragments/requests`)).text();
  assert.equal(dashboard.match(/2 speakers/g)?.length, 1, dashboard);
});

test('no log, capture or file holds a voice, and a request with references is not captured', async () => {
  const speakers = scriptedVoices();
  const voices: Float32Array[] = [];
  const watched = {
    ...speakers,
    async embeddings(...call: Parameters<typeof speakers.embeddings>) {
      const found = await speakers.embeddings(...call);
      voices.push(found.slice());
      return found;
    },
  };
  await using gateway = await startGateway({
    speakers: watched,
    transcribe: async () => heard(' Yes.'),
    env: { SVC_OBS_PAYLOAD_ENABLED: '1', SVC_LOG_LEVEL: 'debug' },
  });
  assert.equal((await ask(gateway, 'with-voice', known)).status, 200);
  const bad = { ...known, 'known_speaker_names[]': '' };
  assert.equal((await ask(gateway, 'bad-voice', bad)).status, 400);
  assert.equal((await ask(gateway, 'without-voice', {})).status, 200);
  assert(voices.length > 0);
  const { payloadDir } = gateway.config.observability;
  const names = () =>
    existsSync(payloadDir) ? readdirSync(payloadDir, { recursive: true }).map(String) : [];
  await until('the last is captured', () =>
    names().some((name) => name.endsWith(join('without-voice', 'meta.json'))),
  );
  // Captures are written in the order of their requests, so an earlier one would be there by now.
  assert.deepEqual(
    names().filter((name) => name.includes('with-voice') || name.includes('bad-voice')),
    [],
  );
  const kept = filesIn(dirname(payloadDir)).concat(Buffer.from(gateway.logged.join('\n')));
  assert(kept.length > 2);
  for (const content of kept) {
    assert(!content.includes(VOICE.slice(1000, 1060)), 'a reference was kept');
    for (const voice of voices) {
      assert(!content.includes(Buffer.from(voice.buffer, 0, 32)), 'an embedding was kept');
      assert(!content.includes(String(voice[0]).slice(0, 9)), 'an embedding was written');
    }
  }
});

test('a voice is not captured under any spelling of its field, and the sounds of a chat are', () => {
  const captured = (body: string, pieces: number) => {
    const kept: Buffer[] = [];
    let isAbandoned = false;
    const writer = withoutVoices({
      request: (chunk) => void kept.push(chunk),
      response: () => undefined,
      finish: () => undefined,
      abandon: () => {
        isAbandoned = true;
      },
    });
    const bytes = Buffer.from(body, 'latin1');
    const size = Math.ceil(bytes.length / pieces);
    for (let at = 0; at < bytes.length; at += size) writer.request(bytes.subarray(at, at + size));
    return isAbandoned ? null : Buffer.concat(kept).toString('latin1');
  };
  const inForm = (disposition: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n--b--\r\n`;
  const voice = `data:audio/wav;base64,${VOICE.slice(0, 200)}`;
  for (const disposition of [
    'name="known_speaker_references[]"',
    'name="known_speaker_references[0]"',
    'name="Known-Speaker-References"',
    'name="knownSpeakerReference"',
    "name*=UTF-8''known%5Fspeaker%5Freferences",
    'name="known\\_speaker\\_references"',
    'name*0="known_"; name*1="speaker_references"',
    'name="=?utf-8?B?a25vd25fc3BlYWtlcl9yZWZlcmVuY2Vz?="',
    'name="voices"',
  ])
    for (const pieces of [1, 2, 3, 7, 1000])
      assert.equal(captured(inForm(disposition, voice), pieces), null, `${disposition} in ${pieces}`);
  for (const body of [
    JSON.stringify({ model: 'm', messages: [{ content: [{ audio_url: { url: voice } }] }] }),
    inForm('name="prompt"', 'They are known, and no speaker said so twice.'),
  ])
    for (const pieces of [1, 5, 1000]) assert.equal(captured(body, pieces), body);
  assert.equal(captured(JSON.stringify({ known_speaker_references: [voice] }), 3), null);
});

test('a model says whether it can tell speakers apart, and a request that cannot be served says why', async () => {
  const installed = ['multilingual-base', 'voice-activity'];
  for (const more of [[], ['diarization']]) {
    await using gateway = await startGateway({
      speakers: scriptedVoices(),
      installed: [...installed, ...more],
      env: { SVC_MODEL_DOWNLOAD: 'off' },
      async ensure(id) {
        if (id !== 'diarization' || more.length > 0) return;
        throw new GatewayError('model_not_installed', { model: id, why: 'SVC_MODEL_DOWNLOAD is off' });
      },
    });
    const { data } = await json(await fetch(`${gateway.base}/v1/models`));
    for (const entry of data) modelEntrySchema.parse(entry);
    assert.deepEqual(
      data.map((entry: any) => entry.supports_diarization),
      [more.length > 0, more.length > 0],
    );
    const answer = await ask(gateway, 'told', {});
    const { error } = await json(answer);
    assert.deepEqual(
      [answer.status, error?.code],
      more.length > 0 ? [200, undefined] : [503, 'model_not_installed'],
    );
    if (more.length === 0) assert.match(error.message, /weights of diarization are not on this server/);
    assert.equal((await ask(gateway, 'plain', { diarize: 'false' })).status, 200);
    assert.equal(gateway.app.slot.status().holder, null);
  }
});

function filesIn(folder: string): Buffer[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path));
}
