/** A target is passed on byte for byte or refused: no two servers may understand it differently. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestTarget } from '../../src/http/server/request-target.ts';

const read = (url: string, host?: string) =>
  requestTarget({ url, headers: host === undefined ? {} : { host } } as Parameters<typeof requestTarget>[0]);

for (const url of [
  '/',
  '/v1/audio/speech',
  '/v1/audio/speech/',
  '/v1/audio//a///b?u=http://x//y/../z',
  "/v1/audio/a'b(c)|d{e}~!$&*+,;=:@",
  '/v1/audio/voices/Jos%C3%A9%20Luis?a=1&b=%2F&c=[]&d=%2e%2e&e=%00&f=\\',
  '/v1/audio/...',
  '/v1/audio/.hidden',
  '/v1/audio/a..b',
  '/v1/audio/..a',
  '/v1/audio/%2e%2e%2e',
  '/v1/audio/%252e%252e/x',
  '/v1/models/openai%2Fwhisper-base',
  '/admin/api/models/Systran%2ffaster-whisper-base/load',
  '//v1/models',
  '/?',
])
  test(`the target ${url} is kept byte for byte`, () => {
    assert.equal(read(url), url);
    assert.equal(read(`http://Voices.example:8000${url}`, 'voices.example:8000'), url);
  });

for (const path of [
  '/v1/audio/../admin',
  '/v1/audio/..',
  '/v1/audio/./speech',
  '/v1/audio/.',
  '/..',
  '/v1/audio/%2e%2e/admin',
  '/v1/audio/%2E./admin',
  '/v1/audio/.%2e',
  '/v1/audio/%2e',
  '/v1/audio/..;/admin',
  '/v1/audio/%2e%2e;x=1/admin',
  '/v1/audio/..%2fadmin',
  '/v1/audio/x%2f..%2fadmin',
  '/v1/audio/x%2Fy',
  '/v1/chat%2fcompletions',
  '/admin%2Fapi/metrics',
  '/v1/audio/..\\admin',
  '/v1/audio\\speech',
  '/v1/audio/..%5cadmin',
  '/v1/audio/x%5Cy',
  '/v1/audio/x%00',
  '/v1/audio/x#y',
  '/v1/audio/x?y#z',
  '/v1/models/..%2fmodels',
  '/v1/models/%2e%2e%2f%2e%2e%2fadmin',
  '/v1/models/x%5cy',
  '/v1/models/../audio/speech',
  '/v1/models/%2e%2e/audio%2fspeech',
])
  test(`the target ${path} is refused`, () => {
    assert.equal(read(path), null);
    assert.equal(read(`http://localhost${path}`, 'localhost'), null);
    assert.equal(read(`${path.split('?')[0]}?q=1${path.includes('#') ? '#' : ''}`), null);
  });

test('an absolute target is a path of the host that Host names, and of no other', () => {
  assert.equal(read('http://localhost', 'localhost'), '/');
  assert.equal(read('HTTPS://localhost?a=1', 'LOCALHOST'), '/?a=1');
  for (const [url, host] of [
    ['http://elsewhere/health', 'localhost'],
    ['http://localhost:1/health', 'localhost'],
    ['http://user@localhost/health', 'localhost'],
    ['http://localhost/health', undefined],
    ['http:///health', 'localhost'],
    ['http://localhost\\@elsewhere/health', 'localhost'],
    ['http://localhost#@elsewhere/health', 'localhost'],
  ] as const)
    assert.equal(read(url, host), null, url);
});

test('a target without a path is refused', () => {
  for (const url of ['', '*', 'v1/models', 'localhost:80', 'ftp://localhost/x', 'http:/localhost/x', '?x'])
    assert.equal(read(url, 'localhost'), null, url);
});
