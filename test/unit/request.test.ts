/** Form fields become a transcription request: every field, in both spellings, or a refusal that names the mistake. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/errors.ts';
import { parseRequest, transcriptionFields } from '../../src/wire/request.ts';
import { assertCheap } from '../cost.ts';

test('an empty form means auto, json, greedy, segments', () => {
  assert.deepEqual(parseRequest({}), {
    model: undefined,
    language: undefined,
    languages: [],
    prompt: '',
    keywords: [],
    temperature: 0,
    beamSize: undefined,
    responseFormat: 'json',
    granularities: new Set(['segment']),
    segmentGranularity: 'sentence',
    subtitleSize: { lineWidth: 42, lines: 2, characters: 70 },
    logprobs: false,
    listsLanguages: false,
    voiceActivity: { threshold: undefined, prefixPaddingMs: undefined, silenceDurationMs: undefined },
    taskType: 'transcribe',
    translate: false,
    stream: false,
    speakers: null,
    channels: null,
    channel: undefined,
    track: undefined,
  });
});

test('who says how subtitles are to look asks for subtitles, where there are any', () => {
  const asked = (fields: Record<string, string>) => {
    const { segmentGranularity, subtitleSize } = parseRequest(fields);
    return [segmentGranularity, subtitleSize.lineWidth, subtitleSize.lines, subtitleSize.characters];
  };
  assert.deepEqual(asked({ response_format: 'srt', max_line_width: '30' }), ['subtitle', 30, 2, 60]);
  assert.deepEqual(asked({ response_format: 'vtt', max_line_count: ' 1 ' }), ['subtitle', 42, 1, 42]);
  assert.deepEqual(asked({ response_format: 'srt', max_line_width: '' }), ['sentence', 42, 2, 70]);
  assert.deepEqual(asked({ max_line_width: '30' }), ['sentence', 30, 2, 60]);
  const sentences = { response_format: 'srt', max_line_width: '30', segment_granularity: 'sentence' };
  assert.deepEqual(asked(sentences), ['sentence', 30, 2, 60]);
});

test('a field sent empty is a field not sent', () => {
  const empty = { model: '', language: '', prompt: '', temperature: '', response_format: '', translate: '' };
  assert.deepEqual(parseRequest(empty), parseRequest({}));
});

test('every known field is understood, and unknown ones are ignored', () => {
  const request = parseRequest({
    model: 'multilingual-base',
    language: 'German',
    prompt: 'Names: Voxgate',
    temperature: '0.4',
    response_format: 'verbose_json',
    timestamp_granularities: ['word', 'segment'],
    translate: 'Yes',
    color: 'blue',
  });
  assert.equal(request.language, 'de');
  assert.equal(request.temperature, 0.4);
  assert.equal(request.translate, true);
  assert.deepEqual(request.granularities, new Set(['word', 'segment']));
});

test('a list takes one value or several', () => {
  for (const word of ['word', ['word'], ' Word ', '["word"]', ['word', 'WORD\n', '']])
    assert.deepEqual(parseRequest({ timestamp_granularities: word }).granularities, new Set(['word']));
});

test('a value that is sent twice is one, and a choice may be in any case', () => {
  const twice = parseRequest({ response_format: ['SRT', ' srt\n', ''], model: ['whisper-1', 'whisper-1 '] });
  assert.deepEqual(twice, parseRequest({ response_format: 'srt', model: 'whisper-1' }));
  const chunking = { type: ['Server_VAD', 'server_vad'], threshold: ['0.4', ''] };
  assert.equal(parseRequest({ chunking_strategy: chunking }).voiceActivity.threshold, 0.4);
  assert.deepEqual(parseRequest({ chunking_strategy: ' AUTO ' }), parseRequest({}));
});

for (const none of ['auto', 'AUTO ', 'und', 'mul', ' '])
  test(`language "${none}" means no hint`, () => {
    assert.equal(parseRequest({ language: none }).language, undefined);
    assert.deepEqual(parseRequest({ languages: [none, 'en'] }).languages, ['en']);
  });

for (const [sent, meant] of [
  ['jp', 'ja for Japanese'],
  ['cn', 'zh for Chinese'],
  ['cz', 'cs for Czech'],
  ['ua-UA', 'uk for Ukrainian'],
  ['kr', 'ko for Korean'],
  ['SE', 'sv for Swedish'],
  ['dk', 'da for Danish'],
  ['gr', 'el for Greek'],
  ['sp', 'es for Spanish'],
] as const)
  test(`language ${sent} is refused, and the refusal names ${meant}`, () => {
    for (const body of [{ language: sent }, { languages: ['en', sent] }]) {
      const { message, param } = refusal(body);
      assert.equal(param, Object.keys(body)[0]);
      assert(message.endsWith(`Expected an ISO 639 code or an English language name, as ${meant}`), message);
    }
  });

test('chunking_strategy is taken as a word, as JSON and as members', () => {
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

test('empty members of chunking_strategy are members not sent', () => {
  const empty = { type: 'server_vad', threshold: null, prefix_padding_ms: '', silence_duration_ms: '200' };
  for (const value of [empty, JSON.stringify(empty)])
    assert.equal(parseRequest({ chunking_strategy: value }).voiceActivity.silenceDurationMs, 200);
  for (const value of [{ type: '', threshold: '' }, '{"type":null}', '{}', 'null'])
    assert.deepEqual(parseRequest({ chunking_strategy: value }), parseRequest({}));
});

for (const [value, fault] of [
  [
    '{"type":"server_vad","threshold":"loud"}',
    '[threshold]" cannot be "loud": Expected a number from 0 to 1',
  ],
  [
    '{"type":"server_vad","threshold":[]}',
    '[threshold]" cannot be a list of 0: Expected a number from 0 to 1',
  ],
  ['{"type":"server_vad","threshold":7}', '[threshold]" cannot be 7: Expected a number from 0 to 1'],
  ['{"type":"semantic_vad"}', '[type]" cannot be "semantic_vad": Expected auto or {"type": "server_vad"}'],
  ['{"threshold":0.5}', '[type]" cannot be absent: Expected auto or {"type": "server_vad"}'],
  ['{"type":"server_vad","color":"red"}', '[color]" cannot be "red": Expected only type, threshold, '],
  ['[null]', '" cannot be a list of 1: Expected auto or {"type": "server_vad"}'],
] as const)
  test(`chunking_strategy ${value} is refused for the member at fault`, () => {
    const { message, param } = refusal({ chunking_strategy: value });
    assert(message.startsWith(`Field "chunking_strategy${fault}`), message);
    assert.equal(param, 'chunking_strategy');
  });

for (const [body, field, allowed] of [
  [{ num_speakers: '1.5' }, 'num_speakers', 'from 1 to 20'],
  [{ max_speakers: '21' }, 'max_speakers', 'from 1 to 20'],
  [{ max_line_width: '0' }, 'max_line_width', 'from 1 to 1000'],
  [{ max_line_count: 'two' }, 'max_line_count', 'from 1 to 1000'],
  [{ min_speakers: '3', max_speakers: '2' }, 'min_speakers', 'at most max_speakers (2)'],
  [{ response_format: 'diarized_json', diarize: 'off' }, 'diarize', 'diarized_json'],
  [{ known_speaker_names: ['Anna'] }, 'known_speaker_references', 'each of the 1'],
  [{ known_speaker_names: ['a', 'b', 'c', 'd', 'e'] }, 'known_speaker_names', 'at most 4'],
  [{ known_speaker_names: ['  '] }, 'known_speaker_names', 'one line'],
  [{ chunking_strategy: 'random' }, 'chunking_strategy', 'server_vad'],
  [{ chunking_strategy: '{"type":"server_vad","threshold":7}' }, 'chunking_strategy', 'from 0 to 1'],
  [{ chunking_strategy: { type: 'server_vad', color: 'red' } }, 'chunking_strategy', '[color]'],
  [{ include: 'everything' }, 'include', 'logprobs'],
  [{ languages: ['en', 'klingon'] }, 'languages', 'ISO 639 code'],
  [{ segment_granularity: 'page' }, 'segment_granularity', 'subtitle'],
  [{ task_type: 'sing' }, 'task_type', 'rich'],
  [{ response_format: 'yaml' }, 'response_format', 'json'],
  [{ beam_size: '9' }, 'beam_size', 'from 1 to 8'],
  [{ beam_size: '0' }, 'beam_size', 'from 1 to 8'],
  [{ beam_size: '2.5' }, 'beam_size', 'from 1 to 8'],
  [{ beam_size: '-1' }, 'beam_size', 'from 1 to 8'],
  [{ temperature: 'hot' }, 'temperature', 'from 0 to 1'],
  [{ temperature: '1.5' }, 'temperature', 'from 0 to 1'],
  [{ temperature: '-0.1' }, 'temperature', 'from 0 to 1'],
  [{ temperature: 'NaN' }, 'temperature', 'from 0 to 1'],
  [{ language: 'klingon' }, 'language', 'ISO 639 code'],
  [{ timestamp_granularities: 'syllable' }, 'timestamp_granularities', 'word'],
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

test('every body gives a request or a malformed error', () => {
  const value = fc.oneof(fc.string(), fc.array(fc.string()), fc.constant({ a: { b: 'c' } }));
  const name = fc.constantFrom(
    'model',
    'language',
    'temperature',
    'response_format',
    'translate',
    '__proto__',
    'timestamp_granularities',
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

function refusal(body: Readonly<Record<string, unknown>>): GatewayError {
  try {
    parseRequest(body);
  } catch (error) {
    assert(error instanceof GatewayError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: 'it was accepted' });
}

const LONG = 64 * 1024;
/** Such text makes a pattern, a parser or a comparison work hard: runs that do not end as they must. */
const HOSTILE = [
  '1',
  ' ',
  '.',
  '1.',
  'e1',
  '-',
  '_',
  'a',
  '[',
  '{"a":',
  '"\\u0041',
  '\n',
  '\u2028',
  'İ',
  '😀',
].map((piece) => `${piece.repeat(LONG / piece.length)}x`);
const NAMES = Object.keys(transcriptionFields);

const MAX: Record<string, number> = { keywords: 200, known_speaker_names: 100 };

for (const name of NAMES.filter((field) => !['prompt', 'known_speaker_references'].includes(field))) {
  const max = MAX[name] ?? 1024;
  test(`${name}: a long value is refused before it is read, with the name and the limit`, async () => {
    for (const text of HOSTILE) {
      for (const body of [{ [name]: text }, { [name]: ['en', text] }, { [name]: { type: text } }]) {
        const error = refusal(body);
        assert.equal(error.param, name);
        assert.equal(error.code, 'invalid_value');
        assert.match(error.message, new RegExp(`"${name}.*at most ${max} characters`, 's'));
        assert(error.message.length < 300, `${error.message.length} characters`);
      }
      await assertCheap(`${name}=${text.slice(0, 8)}…`, 50, () => refusal({ [name]: text }));
    }
  });
}

test('members of chunking_strategy are no longer than fields', async () => {
  for (const text of HOSTILE) {
    const body = { chunking_strategy: { type: 'server_vad', threshold: text } };
    assert.match(refusal(body).message, /"chunking_strategy[\s\S]*at most 1024 characters/);
    await assertCheap(`threshold=${text.slice(0, 8)}…`, 50, () => refusal(body));
  }
});

test('a prompt may be 64 KiB of any text, and no more', async () => {
  for (const text of HOSTILE) {
    const prompt = text.slice(0, LONG);
    assert.equal(parseRequest({ prompt }).prompt, prompt);
    await assertCheap(`prompt=${text.slice(0, 8)}…`, 50, () => parseRequest({ prompt }));
  }
  const error = refusal({ prompt: 'a'.repeat(LONG + 1) });
  assert.equal(error.param, 'prompt');
  assert.match(error.message, /"prompt" .*at most 65536 characters/);
});

test('a reference of a voice may be 3 MiB of any text, and no more', async () => {
  const fits = 'a'.repeat(3 * 1024 * 1024);
  const body = { known_speaker_names: 'Anna', known_speaker_references: fits };
  assert.equal(parseRequest(body).speakers?.known[0]?.reference, fits);
  await assertCheap('known_speaker_references', 50, () => parseRequest(body));
  const error = refusal({ ...body, known_speaker_references: `${fits}a` });
  assert.equal(error.param, 'known_speaker_references');
  assert.match(error.message, /at most 3145728 characters/);
});

for (const [body, speakers] of [
  [{}, null],
  [{ num_speakers: '2' }, null],
  [{ diarize: '0', model: 'gpt-4o-transcribe-diarize' }, null],
  [{ diarize: '1' }, { count: { min: 1, max: 20 }, known: [] }],
  [
    { response_format: 'diarized_json', num_speakers: '3' },
    { count: { min: 3, max: 3 }, known: [] },
  ],
  [
    { model: 'gpt-4o-transcribe-diarize', min_speakers: 2 },
    { count: { min: 2, max: 20 }, known: [] },
  ],
  [{ model: 'openai/gpt-4o-transcribe-diarize-2025-10-15' }, { count: { min: 1, max: 20 }, known: [] }],
  [
    { known_speaker_names: ' Anna ', known_speaker_references: 'data:x' },
    { count: { min: 1, max: 20 }, known: [{ name: 'Anna', reference: 'data:x' }] },
  ],
] as const) {
  test(`${JSON.stringify(body)} ${speakers ? 'tells' : 'does not tell'} speakers apart`, () => {
    assert.deepEqual(parseRequest(body).speakers, speakers);
  });
}

test('a value may have 1024 characters', () => {
  assert.equal(parseRequest({ model: 'm'.repeat(1024) }).model?.length, 1024);
  assert.match(refusal({ model: 'm'.repeat(1025) }).message, /at most 1024 characters/);
  assert.equal(parseRequest({ temperature: `0.${'1'.repeat(1022)}` }).temperature, 1 / 9);
});

for (const [name, value] of [
  ['languages', 'en'],
  ['keywords', 'Voxgate'],
  ['timestamp_granularities', 'word'],
  ['include', 'logprobs'],
] as const) {
  test(`${name}: a list has at most 100 values`, () => {
    parseRequest({ [name]: Array(100).fill(value) });
    const error = refusal({ [name]: Array(101).fill(value) });
    assert.equal(error.param, name);
    assert.match(error.message, /at most 100 values/);
  });
}

test('a refusal shows the value at fault, or the beginning of a long one', () => {
  const shown = (body: Readonly<Record<string, unknown>>) => refusal(body).message.split(': Expected')[0];
  assert.equal(shown({ temperature: 'hot' }), 'Field "temperature" cannot be "hot"');
  assert.equal(shown({ languages: ['en', 'klingon'] }), 'Field "languages" cannot be "klingon"');
  const long = shown({ response_format: '"'.repeat(200) });
  assert.equal(long, `Field "response_format" cannot be ${JSON.stringify(`${'"'.repeat(80)}…`)}`);
});

test('a value that is no text is named, never written out', async () => {
  let nested: unknown = 'x';
  for (let level = 0; level < 5000; level++) nested = { b: nested };
  const sparse: unknown[] = [];
  sparse[20_000_000] = 'x';
  for (const [value, shown] of [
    [nested, 'an object'],
    [sparse, 'a list of 20000001'],
    [['a', 'b'], 'a list of 2'],
    [{ toString: 'x', toJSON: 'x' }, 'an object'],
  ] as const) {
    for (const name of ['model', 'language', 'temperature', 'response_format', 'stream']) {
      const body = { [name]: value };
      assert(refusal(body).message.startsWith(`Field "${name}" cannot be ${shown}: `), refusal(body).message);
      await assertCheap(`${name}: ${shown}`, 50, () => refusal(body));
    }
  }
  for (const name of NAMES) assert.equal(refusal({ [name]: nested }).param, name);
});

test('names of the prototype are names like others', () => {
  const body = JSON.parse('{"__proto__": {"model": "x"}, "constructor": "x", "toString": ["x"]}');
  assert.deepEqual(parseRequest(body), parseRequest({}));
  const member = JSON.parse('{"chunking_strategy": {"type": "server_vad", "__proto__": {"threshold": "1"}}}');
  assert.equal(refusal(member).param, 'chunking_strategy');
  assert.equal(
    refusal({ chunking_strategy: JSON.stringify(member.chunking_strategy) }).param,
    'chunking_strategy',
  );
});

test('numbers are taken as they are written, and no other texts', () => {
  for (const text of ['0', '1', '1.', '.5', '0.25', '+0.5', ' 0.5 ', '5e-1', '5E-1', '.1e+0', '\t1\n'])
    assert.equal(parseRequest({ temperature: text }).temperature, Number(text), text);
  for (const text of ['.', '1..', '1.0.', 'e1', '1e', '0x1', '1_0', '+-1', '1 0', 'Infinity', '١'])
    assert.equal(refusal({ temperature: text }).param, 'temperature', text);
});

test('a beam size is a whole number from 1 to 8', () => {
  assert.equal(parseRequest({}).beamSize, undefined);
  for (const size of [1, 5, 8]) assert.equal(parseRequest({ beam_size: ` ${size}` }).beamSize, size);
  for (const size of ['0', '9', '1.5', '1e0', 'many', '٣'])
    assert.equal(refusal({ beam_size: size }).param, 'beam_size', size);
});
