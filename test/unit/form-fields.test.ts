/** The same request in any encoding of its form is the same request, and what no field knows changes nothing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/errors.ts';
import { parseRequest, transcriptionFields } from '../../src/wire/request.ts';
import { type Part, readParts } from '../form-request.ts';

const TEXTS = Object.keys(transcriptionFields);

async function requestOf(parts: readonly Part[], chunkBytes?: number) {
  return parseRequest((await readParts(parts, TEXTS, chunkBytes)).fields);
}

async function refusal(parts: readonly Part[]): Promise<GatewayError> {
  const read = await requestOf(parts).catch((error: unknown) => error);
  assert(read instanceof GatewayError, JSON.stringify(read));
  assert(read.message.length < 300, read.message);
  return read;
}

/** The encodings of a list, each as the parts of a form. */
const LISTS: Readonly<Record<string, (name: string, values: string[]) => Part[]>> = {
  repeated: (name, values) => values.map((value) => ({ name, value })),
  bracketed: (name, values) => values.map((value) => ({ name: `${name}[]`, value })),
  indexed: (name, values) => values.map((value, i) => ({ name: `${name}[${i}]`, value })).toReversed(),
  'indexed from 30 million': (name, values) =>
    values.map((value, i) => ({ name: `${name}[${30_000_000 + i}]`, value })),
  'a JSON array': (name, values) => [{ name, value: JSON.stringify(values) }],
  'a JSON part': (name, values) => [
    { name, value: JSON.stringify(values, null, 1), type: 'application/json' },
  ],
  blobs: (name, values) =>
    values.map((value) => ({
      name: `${name}[]`,
      value,
      filename: 'blob',
      type: 'application/octet-stream',
    })),
  'comma separated': (name, values) => [{ name, value: values.join(', ') }],
};
const WITHOUT_COMMA = ['languages', 'timestamp_granularities', 'include'];

const listsFor = (name: string, values: readonly string[]) =>
  Object.keys(LISTS).filter((spelling) => {
    if (spelling === 'comma separated')
      return WITHOUT_COMMA.includes(name) || (name === 'keywords' && !values.join('').includes(','));
    // One keyword that is sent alone is divided at its commas.
    return spelling !== 'repeated' || name !== 'keywords' || values.length > 1 || !values[0]?.includes(',');
  });

for (const [name, values] of [
  ['timestamp_granularities', ['word', 'segment']],
  ['include', ['logprobs']],
  ['languages', ['en', 'German', 'zh-TW']],
  ['keywords', ['Ana Lopez', 'Voxgate', 'c']],
  ['keywords', ['Lopez, Ana', 'Voxgate']],
  ['keywords', ['Lopez, Ana']],
] as const)
  for (const spelling of listsFor(name, values))
    test(`${name} ${JSON.stringify(values)} arrives as a list when it is sent ${spelling}`, async () => {
      const sent = LISTS[spelling]?.(name, [...values]) ?? [];
      assert.deepEqual(await requestOf(sent), parseRequest({ [name]: [...values] }));
    });

test('keywords that are sent alone are divided at their commas, and names of speakers never are', async () => {
  assert.deepEqual((await requestOf([{ name: 'keywords', value: 'a, b,,c' }])).keywords, ['a', 'b', 'c']);
  const names: Part[] = [{ name: 'known_speaker_names', value: 'Lopez, Ana' }];
  const reference = 'data:audio/wav;base64,AAAA';
  const { speakers } = await requestOf([...names, { name: 'known_speaker_references', value: reference }]);
  assert.deepEqual(speakers?.known, [{ name: 'Lopez, Ana', reference }]);
});

/** The encodings of one value. `upper` is for words of a choice alone. */
const SCALARS: Readonly<Record<string, (name: string, value: string) => Part[]>> = {
  plain: (name, value) => [{ name, value }],
  twice: (name, value) => [
    { name, value },
    { name, value },
  ],
  'after an empty one': (name, value) => [
    { name, value: '' },
    { name, value },
  ],
  'as a blob': (name, value) => [{ name, value, filename: 'blob', type: 'application/octet-stream' }],
  'as a file of text': (name, value) => [{ name, value, filename: 'value.txt', type: 'text/plain' }],
  'as bytes': (name, value) => [{ name, value, type: 'application/octet-stream' }],
  'as JSON': (name, value) => [{ name, value: JSON.stringify(value), type: 'application/json' }],
  'as JSON that is none': (name, value) => [{ name, value, type: 'application/json; charset=utf-8' }],
  'as declared text': (name, value) => [{ name, value, type: 'text/plain; charset=UTF-8' }],
};
const CHOICES: typeof SCALARS = {
  ...SCALARS,
  'in capitals': (name, value) => [{ name, value: value.toUpperCase() }],
  'with a line feed': (name, value) => [{ name, value: `${value}\n` }],
};
const isChoice = (name: string) => ['response_format', 'segment_granularity', 'task_type'].includes(name);
const scalarsFor = (name: string) => (isChoice(name) ? CHOICES : SCALARS);

for (const spelling of Object.keys(CHOICES))
  test(`a choice that is sent ${spelling} is the choice`, async () => {
    const request = await requestOf(CHOICES[spelling]?.('response_format', 'srt') ?? []);
    assert.deepEqual(request, parseRequest({ response_format: 'srt' }));
  });

const keyword = fc.stringMatching(/^[A-Za-zäßé漢][A-Za-z ,"é漢-]{0,12}[A-Za-z漢]$/);
const fields = fc.record(
  {
    model: fc.constantFrom('whisper-1', 'multilingual-base'),
    language: fc.constantFrom('en', 'German', 'pt-BR', 'auto'),
    prompt: fc.stringMatching(/^[A-ZÄÉa-zß漢][\w ,.é漢»\u00a0]{0,30}[a-z漢]$/),
    temperature: fc.constantFrom('0', '0.2', '1'),
    response_format: fc.constantFrom('json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'),
    segment_granularity: fc.constantFrom('sentence', 'subtitle'),
    task_type: fc.constantFrom('transcribe', 'rich'),
    stream: fc.constantFrom('true', 'false'),
    num_speakers: fc.constantFrom('1', '20'),
    languages: fc.array(fc.constantFrom('en', 'de', 'Japanese'), { minLength: 1, maxLength: 3 }),
    keywords: fc.array(keyword, { minLength: 1, maxLength: 4 }),
    timestamp_granularities: fc.array(fc.constantFrom('word', 'segment'), { minLength: 1, maxLength: 2 }),
    include: fc.constant(['logprobs']),
  },
  { requiredKeys: [] },
);

/** Names of other services, and names that try to become structures. */
const OTHERS = [
  'provider[order][]',
  'metadata[tags][0]',
  'anything[4294967294]',
  `deep${'[a]'.repeat(500)}`,
  '__proto__[model]',
  'constructor[prototype][model]',
  '[]',
  'a]b[',
  'n'.repeat(4000),
];
const chunking = fc.option(
  fc.constantFrom<Part[]>(
    [
      { name: 'chunking_strategy[type]', value: 'server_vad' },
      { name: 'chunking_strategy[threshold]', value: '0.4' },
    ],
    [{ name: 'chunking_strategy', value: '{"type": "SERVER_VAD", "threshold": 0.4}' }],
    [
      {
        name: 'chunking_strategy',
        value: '{"type":"server_vad","threshold":"0.4"}',
        type: 'application/json',
      },
    ],
  ),
);

test('every encoding of a form gives the same request', async () => {
  const choose = fc.infiniteStream(fc.nat({ max: 1000 }));
  await fc.assert(
    fc.asyncProperty(
      fields,
      chunking,
      fc.subarray(OTHERS),
      choose,
      fc.integer({ min: 40, max: 5000 }),
      async (asked, cut, others, choices, chunkBytes) => {
        const next = (many: number) => (choices.next().value ?? 0) % many;
        const pick = <T>(from: readonly T[]) => from[next(from.length)] as T;
        const groups: Part[][] = Object.entries(asked).map(([name, value]) => {
          if (Array.isArray(value)) return LISTS[pick(listsFor(name, value))]?.(name, value) ?? [];
          const spellings = scalarsFor(name);
          return spellings[pick(Object.keys(spellings))]?.(name, String(value)) ?? [];
        });
        groups.push(...others.map((name) => [{ name, value: 'x' }]), cut ?? []);
        const order = groups.map((parts) => ({ parts, at: next(1000) })).toSorted((a, b) => a.at - b.at);
        const expected = parseRequest({
          ...asked,
          ...(cut && { chunking_strategy: '{"type":"server_vad","threshold":0.4}' }),
        });
        assert.deepEqual(
          await requestOf(
            order.flatMap(({ parts }) => parts),
            chunkBytes,
          ),
          expected,
        );
        assert.deepEqual(Object.keys(Object.prototype), []);
        assert.equal(({} as Record<string, unknown>).model, undefined);
      },
    ),
    { numRuns: 60 },
  );
});

test('names that no field has are skipped whatever they look like, and take no memory', async () => {
  const others: Part[] = OTHERS.map((name) => ({ name, value: 'x'.repeat(100_000) }));
  const blob = { name: 'provider', value: 'x', filename: 'blob' };
  const { fields: read, memory } = await readParts([...others, blob], TEXTS);
  assert.deepEqual({ ...read }, {});
  assert.equal(Object.getPrototypeOf(read), null);
  assert.equal(memory, 0);
});

for (const [name, value] of [
  ['model[a][b]', 'x'],
  [`model${'[b]'.repeat(5000)}`, 'x'],
  ['languages[0][]', 'en'],
  ['keywords[', 'x'],
  ['keywords[0]x', 'x'],
  ['model[b]', 'x'],
  ['languages[b]', 'en'],
  ['chunking_strategy[type]x', 'server_vad'],
  ['chunking_strategy[__proto__]', 'x'],
] as const)
  test(`${name.slice(0, 40)} is a known field in a form that has no meaning, and is refused by its name`, async () => {
    const error = await refusal([{ name, value }]);
    assert.deepEqual([error.code, error.param], ['invalid_value', name.split('[')[0]]);
  });

test('two different values of one field are refused by its name, and so are a value and members', async () => {
  for (const parts of [
    [
      { name: 'response_format', value: 'srt' },
      { name: 'response_format', value: 'vtt' },
    ],
    [
      { name: 'model', value: 'whisper-1' },
      { name: 'model', value: 'large', filename: 'blob' },
    ],
    [
      { name: 'chunking_strategy', value: 'auto' },
      { name: 'chunking_strategy[type]', value: 'server_vad' },
    ],
    [
      { name: 'chunking_strategy[type]', value: 'server_vad' },
      { name: 'chunking_strategy[threshold]', value: '0.1' },
      { name: 'chunking_strategy[threshold]', value: '0.2' },
    ],
  ]) {
    const error = await refusal(parts);
    assert.equal(error.param, parts.at(-1)?.name?.split('[')[0]);
    assert.match(error.message, /a list of 2/);
  }
});

test('a known field that cannot be read is refused by its name', async () => {
  const foreign = await refusal([{ name: 'prompt', value: 'x', type: 'text/plain; charset=utf-16be' }]);
  assert.match(foreign.message, /"prompt" cannot be in its character set: Expected UTF-8/);
  const file = { name: 'prompt', value: 'x'.repeat(70_000), filename: 'prompt.txt' };
  const long = await readParts([file], TEXTS).catch((error) => error);
  assert.deepEqual([long.code, long.field], ['LIMIT_FIELD_VALUE', 'prompt']);
});

test('JSON parts hold texts, numbers and switches, and null is a field that was not sent', async () => {
  const type = 'application/json';
  const request = await requestOf([
    { name: 'model', value: '"whisper-1"', type },
    { name: 'temperature', value: ' 0.5 ', type },
    { name: 'stream', value: 'true', type },
    { name: 'language', value: 'null', type },
    { name: 'prompt', value: '"a \\"b\\" \\u00e9"', type },
  ]);
  const plain = { model: 'whisper-1', temperature: '0.5', stream: 'true', prompt: 'a "b" é' };
  assert.deepEqual(request, parseRequest(plain));
});

test('quotes in a part that does not say it is JSON stay', async () => {
  assert.equal((await requestOf([{ name: 'prompt', value: '"Hello"' }])).prompt, '"Hello"');
});

test('long lists in one text are refused for their length, at little cost', async () => {
  for (const value of [
    ','.repeat(60_000),
    'a,'.repeat(30_000),
    `[${'1,'.repeat(30_000)}1]`,
    '['.repeat(60_000),
  ])
    for (const name of ['keywords', 'languages', 'known_speaker_names'])
      assert.equal((await refusal([{ name, value }])).param, name);
});

const bytes = Buffer.from([0x52, 0x49, 0x46, 0x46, 0xff, 0xfe, 0x00, 0x80, 0x0d, 0x0a, 0xe9]);
for (const [what, type] of [
  ['as bytes', 'application/octet-stream'],
  ['with a type of audio', 'audio/wav'],
  ['with a type of video', 'video/mp4'],
  ['with a type that means nothing', 'wav'],
] as const)
  test(`a file without a file name, ${what}, is the file byte for byte`, async () => {
    for (const chunkBytes of [1, 7, 65_536]) {
      const parts = [
        { name: 'model', value: 'auto' },
        { name: 'file', value: bytes, type },
        { name: 'prompt', value: 'é' },
      ];
      const { file, isNamed, fields: read } = await readParts(parts, TEXTS, chunkBytes);
      assert.deepEqual(file, bytes);
      assert.equal(isNamed, false);
      assert.deepEqual({ ...read }, { model: 'auto', prompt: 'é' });
    }
  });

test('a text is no file, also where its part has the name of the file', async () => {
  for (const type of [undefined, 'text/plain'])
    assert.equal(
      (await readParts([{ name: 'file', value: 'speech.wav', ...(type && { type }) }], TEXTS)).file,
      undefined,
    );
});
