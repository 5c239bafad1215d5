import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/errors.ts';
import { parseRequest } from '../../src/transcription/request.ts';

test('nothing sent means auto, json, greedy, segments', () => {
  assert.deepEqual(parseRequest({}), {
    model: undefined,
    language: undefined,
    languages: [],
    prompt: '',
    keywords: [],
    temperature: 0,
    responseFormat: 'json',
    granularities: new Set(['segment']),
    segmentGranularity: 'sentence',
    logprobs: false,
    voiceActivity: { threshold: undefined, prefixPaddingMs: undefined, silenceDurationMs: undefined },
    taskType: 'transcribe',
    translate: false,
    stream: false,
  });
});

test('a field sent empty is a field not sent', () => {
  const empty = { model: '', language: '', prompt: '', temperature: '', response_format: '', translate: '' };
  assert.deepEqual(parseRequest(empty), parseRequest({}));
});

test('every field is understood, unknown ones are ignored', () => {
  const request = parseRequest({
    model: 'multilingual-base',
    language: 'German',
    prompt: 'Names: Voxgate',
    temperature: '0.4',
    response_format: 'verbose_json',
    'timestamp_granularities[]': ['word', 'segment'],
    translate: 'Yes',
    colour: 'blue',
  });
  assert.equal(request.language, 'de');
  assert.equal(request.temperature, 0.4);
  assert.equal(request.translate, true);
  assert.deepEqual(request.granularities, new Set(['word', 'segment']));
});

test('both spellings of the array, one value or several', () => {
  for (const body of [
    { 'timestamp_granularities[]': 'word' },
    { 'timestamp_granularities[]': ['word'] },
    { timestamp_granularities: 'word' },
    { timestamp_granularities: ['word'] },
  ]) {
    assert.deepEqual(parseRequest(body).granularities, new Set(['word']));
  }
});

test('language auto means no hint', () =>
  assert.equal(parseRequest({ language: 'auto' }).language, undefined));

test('the lists of the API in both spellings', () => {
  const request = parseRequest({
    'languages[]': ['en', 'German'],
    keywords: 'Voxgate',
    'include[]': 'logprobs',
  });
  assert.deepEqual(request.languages, ['en', 'de']);
  assert.deepEqual(request.keywords, ['Voxgate']);
  assert.equal(request.logprobs, true);
});

test('chunking_strategy as a word, as JSON and as members', () => {
  const members = { type: 'server_vad', threshold: '0.6', silence_duration_ms: '200' };
  for (const value of [members, JSON.stringify(members)]) {
    assert.deepEqual(parseRequest({ chunking_strategy: value }).voiceActivity, {
      threshold: 0.6,
      prefixPaddingMs: undefined,
      silenceDurationMs: 200,
    });
  }
  assert.deepEqual(parseRequest({ chunking_strategy: 'auto' }), parseRequest({}));
});

for (const [body, field, allowed] of [
  [{ response_format: 'diarized_json' }, 'response_format', 'verbose_json'],
  [{ chunking_strategy: 'random' }, 'chunking_strategy', 'server_vad'],
  [{ chunking_strategy: '{"type":"server_vad","threshold":7}' }, 'chunking_strategy', 'from 0 to 1'],
  [{ chunking_strategy: { type: 'server_vad', colour: 'red' } }, 'chunking_strategy', 'server_vad'],
  [{ 'include[]': 'everything' }, 'include', 'logprobs'],
  [{ 'languages[]': ['en', 'klingon'] }, 'languages', 'ISO 639-1'],
  [{ segment_granularity: 'page' }, 'segment_granularity', 'subtitle'],
  [{ task_type: 'sing' }, 'task_type', 'rich'],
  [{ response_format: 'yaml' }, 'response_format', 'json'],
  [{ temperature: 'hot' }, 'temperature', 'from 0 to 1'],
  [{ temperature: '1.5' }, 'temperature', 'from 0 to 1'],
  [{ temperature: '-0.1' }, 'temperature', 'from 0 to 1'],
  [{ temperature: 'NaN' }, 'temperature', 'from 0 to 1'],
  [{ language: 'klingon' }, 'language', 'ISO 639-1'],
  [{ 'timestamp_granularities[]': 'syllable' }, 'timestamp_granularities', 'word'],
  [{ model: ['a', 'b'] }, 'model', 'one text value'],
] as const) {
  test(`bad ${JSON.stringify(body)} names field, value and what is allowed`, () => {
    assert.throws(
      () => parseRequest(body),
      (error: unknown) => {
        assert(error instanceof GatewayError);
        assert.equal(error.kind, 'malformed');
        assert.equal(error.param, field);
        assert(error.message.includes(allowed), error.message);
        return true;
      },
    );
  });
}

test('whatever is sent is a request or a malformed error', () => {
  const value = fc.oneof(fc.string(), fc.array(fc.string()), fc.constant({ a: { b: 'c' } }));
  const name = fc.constantFrom(
    'model',
    'language',
    'temperature',
    'response_format',
    'translate',
    '__proto__',
    'timestamp_granularities[]',
  );
  fc.assert(
    fc.property(fc.dictionary(fc.oneof(name, fc.string()), value), (body) => {
      try {
        parseRequest(body);
      } catch (error) {
        assert(error instanceof GatewayError, String(error));
        assert.equal(error.kind, 'malformed');
      }
    }),
  );
});
