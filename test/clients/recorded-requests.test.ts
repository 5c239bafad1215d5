/**
 * Clients that are whole applications cannot be installed by a test. Their requests are sent here byte by byte as their
 * code and the libraries that it calls write them, and the answers are read as they read them.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { json } from '../http/harness.ts';
import { JFK, JFK_TEXT, needsWeights, plain, startRealGateway } from '../model/gateway.ts';

const KEY = 'right';
const speech = readFileSync(JFK);

/** A part of a body: its headers as one text, and its content. */
type Part = [headers: string, content: string | Buffer];

function body(boundary: string, parts: Part[]): Buffer {
  const written = parts.flatMap(([headers, content]) => [
    Buffer.from(`--${boundary}\r\n${headers}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
  return Buffer.concat([...written, Buffer.from(`--${boundary}--\r\n`)]);
}

/**
 * `backend/open_webui/routers/audio.py` of Open WebUI with the package requests: fields first, no type of the file, and a
 * random name.
 */
async function sendLikeOpenWebui(base: string, fields: [string, string][]) {
  const boundary = '5f2b1a0c9d8e7f6a5b4c3d2e1f0a9b8c';
  return await fetch(`${base}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: {
      'user-agent': 'python-requests/2.32.5',
      'accept-encoding': 'gzip, deflate, br',
      accept: '*/*',
      authorization: `Bearer ${KEY}`,
      'content-type': `multipart/form-data; boundary=${boundary}`,
    },
    body: body(boundary, [
      ...fields.map(([name, value]): Part => [`Content-Disposition: form-data; name="${name}"`, value]),
      ['Content-Disposition: form-data; name="file"; filename="0f9e8d7c-1b2a-4c3d-8e4f.mp3"', speech],
    ]),
  });
}

test('Open WebUI gets the text and the segments that it shows', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway({}, { SVC_API_KEY: KEY });
  const response = await sendLikeOpenWebui(gateway.base, [
    ['model', 'whisper-1'],
    ['response_format', 'verbose_json'],
    ['timestamp_granularities[]', 'segment'],
  ]);
  assert.equal(response.status, 200);
  const { text, segments } = await json(response);
  assert.equal(plain(text), plain(JFK_TEXT));
  for (const segment of segments) {
    assert(segment.start < segment.end && segment.text.trim() !== '');
    assert.equal(typeof segment.id, 'number');
  }
  const older = await sendLikeOpenWebui(gateway.base, [
    ['model', 'whisper-1'],
    ['language', 'en'],
  ]);
  assert.equal(plain((await json(older)).text), plain(JFK_TEXT));
});

test('Open WebUI shows the message of an error', async () => {
  await using gateway = await startRealGateway({}, { SVC_API_KEY: 'another' });
  const response = await sendLikeOpenWebui(gateway.base, [['model', 'whisper-1']]);
  assert.equal(response.status, 401);
  assert.match((await json(response)).error.message, /key/i);
});

/**
 * `nodes/vendors/OpenAi/actions/audio/` of n8n's package nodes-langchain with the package form-data, which puts the type
 * before each file and writes a long boundary.
 */
async function sendLikeN8n(url: string, fields: [string, string][]) {
  const boundary = '--------------------------735323031399963166993862';
  return await fetch(url, {
    method: 'POST',
    headers: {
      accept:
        'application/json,text/html,application/xhtml+xml,application/xml,text/*;q=0.9, image/*;q=0.8, */*;q=0.7',
      authorization: `Bearer ${KEY}`,
      'user-agent': 'axios/1.12.0',
      'content-type': `multipart/form-data; boundary=${boundary}`,
    },
    body: body(boundary, [
      ...fields.map(([name, value]): Part => [`Content-Disposition: form-data; name="${name}"`, value]),
      [
        'Content-Disposition: form-data; name="file"; filename="speech.mp3"\r\nContent-Type: audio/mpeg',
        speech,
      ],
    ]),
  });
}

test('n8n transcribes and translates a recording', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway({}, { SVC_API_KEY: KEY });
  for (const [path, fields] of [
    ['transcriptions', [['model', 'whisper-1']]],
    [
      'transcriptions',
      [
        ['model', 'whisper-1'],
        ['language', 'en'],
        ['temperature', '0.2'],
      ],
    ],
    ['translations', [['model', 'whisper-1']]],
  ] satisfies [string, [string, string][]][]) {
    const response = await sendLikeN8n(`${gateway.base}/v1/audio/${path}`, fields);
    assert.equal(response.status, 200);
    assert.equal(plain((await json(response)).text), plain(JFK_TEXT), path);
  }
});

test('n8n lists the models that it offers', async () => {
  await using gateway = await startRealGateway({}, { SVC_API_KEY: KEY });
  const headers = { authorization: `Bearer ${KEY}` };
  const { data } = await json(await fetch(`${gateway.base}/v1/models`, { headers }));
  assert(data.length > 0 && data.every(({ id }: { id: unknown }) => typeof id === 'string'));
});
