/** Each row is named after the place of the contract about transcription that it tests: 4.3, 6 or 7. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinWavs } from '../wav.ts';
import { form, heard, json, post, type Script, startGateway, toneWav, until } from './harness.ts';

const speech = toneWav(2);
const UNTRANSLATING = ['multilingual-large-v3-turbo', 'multilingual-distil-large-v3'];
const everything = ['multilingual-small', 'european', 'cjk', 'voice-activity'];

interface Row {
  row: string;
  fields?: Record<string, string>;
  script?: Script;
  file?: Uint8Array | null;
  check(response: Response): Promise<void> | void;
}

const ok = async (response: Response) => {
  assert.equal(response.status, 200, await response.clone().text());
};
const served = (model: string, route?: string) => async (response: Response) => {
  await ok(response);
  assert.equal(response.headers.get('x-voxgate-model'), model);
  if (route !== undefined) assert.equal(response.headers.get('x-voxgate-route'), route);
};
const refused =
  (status: number, kind: string, extra: Record<string, string> = {}) =>
  async (response: Response) => {
    const { error } = await json(response);
    assert.equal(response.status, status, JSON.stringify(error));
    assert.equal(error.kind, kind);
    for (const [key, value] of Object.entries(extra)) assert.equal(error[key], value);
  };
const eventsOf = async (response: Response): Promise<any[]> => {
  await ok(response);
  return [...(await response.text()).matchAll(/^data: (.+)$/gm)].map((m) => JSON.parse(m[1] ?? ''));
};
const eventTypes = async (response: Response) => (await eventsOf(response)).map(({ type }) => type);
const segmentsOf = async (response: Response) => (await json(response)).segments;

const long =
  ' a stranger should find every room by its name and see on one screen what a function does, because nobody else' +
  ' will ever explain it to them while they are holding a broken machine together with both hands';
/** This engine transcribes what it was asked for. */
const echo: Script = {
  installed: ['multilingual-base', ...everything],
  transcribe: async (_samples, { language, translate }) =>
    heard(` ${language || 'any language'}${translate ? ' to English' : ''}`),
};
const heardAs = (text: string, model: string) => async (response: Response) => {
  await served(model)(response);
  assert.equal((await json(response)).text, text);
};
const spoken = (text: string): Script => ({ installed: everything, transcribe: async () => heard(text) });
const hinted = (language: string) => ({
  fields: { model: 'auto', language },
  script: { installed: everything },
});

const ROWS: Row[] = [
  {
    row: '4.3 field file: a form without a file is refused',
    file: null,
    check: refused(400, 'malformed', { param: 'file' }),
  },
  { row: '4.3 field model: an absent model means auto', check: served('multilingual-base') },
  {
    row: '4.3 field model: an id chooses its model',
    fields: { model: 'multilingual-base' },
    check: served('multilingual-base', 'requested'),
  },
  {
    row: '4.3 field model: an alias chooses its model',
    fields: { model: 'whisper-base' },
    check: served('multilingual-base', 'requested'),
  },
  ...[
    { model: 'base.en', language: 'en' },
    { model: 'Systran/faster-whisper-base.en', language: 'en' },
  ].map(({ model, language }) => ({
    row: `4.3 field model: ${model} says the language`,
    fields: { model, response_format: 'verbose_json' },
    script: echo,
    check: heardAs(language, 'multilingual-base'),
  })),
  {
    row: '4.3 field model: a hint wins over the language of a name for English only',
    fields: { model: 'base.en', language: 'de' },
    script: echo,
    check: heardAs('de', 'multilingual-base'),
  },
  ...['de', 'fr'].map((language) => ({
    row: `4.3 field language: the hint ${language} reaches the engine`,
    fields: { model: 'multilingual-base', language },
    script: echo,
    check: heardAs(language, 'multilingual-base'),
  })),
  ...[
    { language: 'ja', name: 'japanese' },
    { language: 'ga', name: 'irish' },
  ].map(({ language, name }) => ({
    row: `4.3 field language: on european ${language} is recorded and does not constrain`,
    fields: { model: 'european', language, response_format: 'verbose_json' },
    script: { installed: everything },
    check: async (response: Response) => {
      await served('european')(response);
      const answer = await json(response);
      assert.deepEqual([answer.language, answer.language_code], [name, language]);
    },
  })),
  {
    row: '4.3 responses: the language of european is that of its words',
    fields: { model: 'european', response_format: 'verbose_json' },
    script: spoken(' Je ne sais pas pourquoi le train est en retard.'),
    check: async (response) => {
      const { language, language_code, language_probability } = await json(response);
      assert.deepEqual([language, language_code], ['french', 'fr']);
      assert(language_probability > 0.9 && language_probability <= 1, String(language_probability));
    },
  },
  {
    row: '4.3 responses: european says English with probability 0 where there are too few words',
    fields: { model: 'european', response_format: 'verbose_json' },
    script: spoken(' Yes.'),
    check: async (response) => {
      const { language, language_code, language_probability } = await json(response);
      assert.deepEqual([language, language_code, language_probability], ['english', 'en', 0]);
    },
  },
  ...['zh', 'en', 'yue', 'ja', 'ko', 'auto'].map((language) => ({
    row: `4.3 field language: cjk knows ${language}`,
    fields: { model: 'cjk', language },
    script: echo,
    check: heardAs(language === 'auto' ? 'any language' : language, 'cjk'),
  })),
  ...[
    {
      model: 'cjk',
      language: 'de',
      message: 'cjk does not know german (de); it knows zh, yue, en, ja, ko',
    },
    {
      model: 'multilingual-base',
      language: 'ky',
      message: 'multilingual-base does not know kyrgyz (ky); it knows en, zh, de, es, ru and 94 more',
    },
  ].map(({ model, language, message }) => ({
    row: `4.3 field language: ${model} lacks ${language}, and says what it knows`,
    fields: { model, language },
    script: { installed: ['multilingual-base', ...everything] },
    check: refused(400, 'malformed', { param: 'language', code: 'unsupported_language', message }),
  })),
  ...['en', 'ky'].map((languages) => ({
    row: `4.3 field languages: ${languages} is no obstacle on a model that recognizes en and lacks ky`,
    fields: { 'languages[]': languages, response_format: 'verbose_json' },
    check: async (response: Response) => {
      const answer = await json(response);
      assert.deepEqual([answer.language_code, answer.language_probability], ['en', 1]);
    },
  })),
  {
    row: '4.3 field response_format: text gives the text alone',
    fields: { response_format: 'text' },
    check: async (response) => assert.equal(await response.text(), 'Hello there.\n'),
  },
  {
    row: '4.3 field response_format: verbose_json gives segments',
    fields: { response_format: 'verbose_json' },
    check: async (response) => {
      const answer = await json(response);
      assert.equal(answer.text, 'Hello there.');
      assert.equal(answer.segments.length, 1);
    },
  },
  {
    row: '4.3 field translate: true asks the engine for English',
    fields: { translate: 'true', language: 'de' },
    script: { ...echo, installed: ['multilingual-base', 'voice-activity'] },
    check: async (response) => {
      await served('multilingual-base', 'auto:translate-fallback')(response.clone());
      await heardAs('de to English', 'multilingual-base')(response);
    },
  },
  {
    row: '4.3 field stream: true yields server-sent events',
    fields: { stream: 'true' },
    check: async (response) => assert.equal((await eventTypes(response)).at(-1), 'transcript.text.done'),
  },
  {
    row: '4.3 field segment_granularity: subtitle cuts the segments of european',
    fields: { model: 'european', response_format: 'verbose_json', segment_granularity: 'subtitle' },
    script: spoken(long),
    check: async (response) => {
      const segments = await segmentsOf(response);
      assert(segments.length > 1);
      for (const { text, start, end } of segments) assert(text.trim().length <= 70 && end - start <= 7);
    },
  },
  ...[
    { what: 'stays for a second', silence: 3, lastsSec: 1 },
    { what: 'stays no longer than the audio', silence: 0.3, lastsSec: 0.6 },
  ].map(({ what, silence, lastsSec }) => ({
    row: `4.3 segments: a subtitle of one short word ${what}`,
    fields: { model: 'european', response_format: 'verbose_json', segment_granularity: 'subtitle' },
    script: spoken(' Oui.'),
    file: joinWavs(toneWav(0.3), toneWav(silence, 0)),
    check: async (response: Response) => {
      const [{ start, end }] = await segmentsOf(response);
      assert.deepEqual([start, end], [0, lastsSec]);
    },
  })),
  {
    row: '4.3 field segment_granularity: subtitle leaves the segments of others whole',
    fields: { model: 'multilingual-small', response_format: 'verbose_json', segment_granularity: 'subtitle' },
    script: spoken(long),
    check: async (response) => assert.equal((await segmentsOf(response)).length, 1),
  },
  ...(['srt', 'vtt'] as const).map((format) => ({
    row: `4.3 field segment_granularity: subtitle applies to ${format} on every model`,
    fields: { model: 'multilingual-small', response_format: format, segment_granularity: 'subtitle' },
    script: spoken(long),
    check: async (response: Response) => {
      await ok(response);
      assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8');
      const lines = (await response.text()).split('\n');
      const cues = lines.filter((_line, i) => lines[i - 1]?.includes(' --> '));
      assert(cues.length > 1);
      for (const cue of cues) assert(cue.length <= 70, cue);
    },
  })),
  ...(['srt', 'vtt'] as const).map((format) => ({
    row: `4.3 field max_line_width: the lines of ${format} are no wider`,
    fields: {
      model: 'multilingual-small',
      response_format: format,
      max_line_width: '24',
      max_line_count: '3',
    },
    script: spoken(long),
    check: async (response: Response) => {
      await ok(response);
      const cues = (await response.text()).split('\n\n').map((cue) => cue.split(/ --> .*\n/)[1] ?? '');
      const lines = cues.map((cue) => cue.trim().split('\n'));
      assert.equal(Math.max(...lines.map((cue) => cue.length)), 3);
      for (const line of lines.flat()) assert(line.length <= 24, line);
    },
  })),
  {
    row: '4.3 field task_type: rich gives the segments of cjk emotion and event',
    fields: { model: 'cjk', task_type: 'rich', response_format: 'verbose_json' },
    script: { installed: everything },
    check: async (response) => {
      const [{ emotion, event }] = await segmentsOf(response);
      assert.deepEqual([emotion, event], ['unknown', 'unknown'], 'the engine does not tell');
    },
  },
  ...['multilingual-small', 'european'].map((model) => ({
    row: `4.3 field task_type: rich on ${model} adds nothing`,
    fields: { model, task_type: 'rich', response_format: 'verbose_json' },
    script: { installed: everything },
    check: async (response: Response) => {
      const [segment] = await segmentsOf(response);
      assert.deepEqual(['emotion' in segment, 'event' in segment], [false, false]);
    },
  })),
  {
    row: '4.3 auto: a CJK hint takes cjk where it is installed',
    ...hinted('ko'),
    check: served('cjk', 'auto:cjk-language'),
  },
  {
    row: '4.3 auto: a European hint takes european where it is installed',
    ...hinted('fr'),
    check: served('european', 'auto:european-language'),
  },
  {
    row: '4.3 auto: any other hint takes multilingual',
    ...hinted('ar'),
    check: served('multilingual-small', 'auto:other-language'),
  },
  {
    row: '4.3 auto: a language that no model has leaves the language to the engine',
    fields: { model: 'auto', language: 'ky', response_format: 'verbose_json' },
    script: { installed: everything },
    check: async (response) => {
      await served('multilingual-small', 'auto:other-language')(response.clone());
      assert.equal((await json(response)).language, 'english'); // the language that the engine detects
    },
  },
  {
    row: '4.3 auto: no hint takes multilingual',
    fields: { model: 'auto' },
    script: { installed: everything },
    check: served('multilingual-small', 'auto:no-hint'),
  },
  {
    row: '4.3 auto: a preferred model that is not installed is replaced by one that is',
    fields: { language: 'ko' },
    check: served('multilingual-base', 'auto:cjk-language-fallback'),
  },
  {
    row: '4.3 backend multilingual: it streams and translates',
    fields: { model: 'multilingual-base', stream: 'true', translate: 'true' },
    check: async (response) =>
      assert.deepEqual(await eventTypes(response), ['transcript.text.delta', 'transcript.text.done']),
  },
  ...['european', 'cjk', ...UNTRANSLATING].map((model) => ({
    row: `4.3 backend ${model}: translate=true is 400 malformed`,
    fields: { model, translate: 'true' },
    script: { installed: [model, ...everything] },
    check: refused(400, 'malformed', { param: 'translate', code: 'unsupported_translate' }),
  })),
  {
    row: '4.3 field translate: auto takes a model that translates, not the nearest on disk',
    fields: { translate: 'true' },
    script: { installed: [...UNTRANSLATING, 'multilingual-large-v3', 'voice-activity'] },
    check: served('multilingual-large-v3', 'auto:translate-fallback'),
  },
  {
    row: '4.3 field language: multilingual-distil-large-v3 knows English alone',
    fields: { model: 'multilingual-distil-large-v3', language: 'de' },
    script: { installed: [...UNTRANSLATING, 'voice-activity'] },
    check: refused(400, 'malformed', { param: 'language', code: 'unsupported_language' }),
  },
  {
    row: '4.3 segments: by default a segment is a full sentence',
    fields: { model: 'european', response_format: 'verbose_json' },
    script: spoken(' One two. Three four!'),
    check: async (response) =>
      assert.deepEqual(
        (await segmentsOf(response)).map((s: { text: string }) => s.text.trim()),
        ['One two.', 'Three four!'],
      ),
  },
  {
    row: '4.3 segments: multilingual and cjk give sentences',
    fields: { model: 'cjk', response_format: 'verbose_json' },
    script: spoken(' One two. Three four!'),
    check: async (response) => assert.equal((await segmentsOf(response)).length, 2),
  },
  {
    row: '4.3 English of the CJK backend: spaces between words are kept',
    fields: { model: 'cjk', language: 'en' },
    script: spoken(' one two'),
    check: async (response) => assert.equal((await json(response)).text, 'one two'),
  },
  ...[
    { format: 'text', expected: '\n' },
    { format: 'vtt', expected: 'WEBVTT\n\n' },
    { format: 'json', expected: '{"text":"","usage":{"type":"duration","seconds":2}}' },
  ].map(({ format, expected }) => ({
    row: `4.3 responses: a description of a sound is no speech, as ${format}`,
    fields: { model: 'multilingual-small', response_format: format },
    script: spoken(' (crickets chirping)'),
    check: async (response: Response) => {
      await ok(response);
      assert.equal(await response.text(), expected);
    },
  })),
  {
    row: '4.3 responses: a description of a sound within speech goes with its words',
    fields: {
      model: 'multilingual-small',
      response_format: 'verbose_json',
      'timestamp_granularities[]': 'word',
    },
    script: spoken(' Well, *sighs* I know (laughs).'),
    check: async (response) => {
      const { text, words } = await json(response);
      assert.equal(text, 'Well, I know.');
      assert.deepEqual(
        words.map(({ word, start }: { word: string; start: number }) => [word, start]),
        [
          ['Well,', 0],
          ['I', 0.2],
          ['know.', 0.3],
        ],
      );
    },
  },
  {
    row: '4.3 responses: a prompt with parentheses asks for what is written in them',
    fields: { model: 'multilingual-small', prompt: 'A meeting (with noises).' },
    script: spoken(' (crickets chirping) [Music] Hello.'),
    check: heardAs('(crickets chirping) Hello.', 'multilingual-small'),
  },
  {
    row: '4.3 responses: an unknown model is 400 malformed',
    fields: { model: 'nope' },
    check: refused(400, 'malformed', { param: 'model' }),
  },
  {
    row: '4.3 responses: a missing backend library is 503 network',
    fields: { model: 'european' },
    script: { engine: null },
    check: refused(503, 'network', { provider: 'european' }),
  },
  {
    row: '6 ASR stream: there is a delta for each segment, and done at the end',
    fields: { stream: 'true' },
    script: { transcribe: async () => heard(' One. Two.') },
    check: async (response) =>
      assert.deepEqual(await eventTypes(response), [
        'transcript.text.delta',
        'transcript.text.delta',
        'transcript.text.done',
      ]),
  },
  {
    row: '6 ASR stream: cjk streams',
    fields: { model: 'cjk', stream: 'true' },
    script: { installed: everything },
    check: async (response) =>
      assert.deepEqual(await eventTypes(response), ['transcript.text.delta', 'transcript.text.done']),
  },
  {
    row: '6 ASR stream: european downgrades with a warning and one delta that is the text',
    fields: { model: 'european', stream: 'true' },
    script: spoken(' One. Two.'),
    check: async (response) =>
      assert.deepEqual(
        (await eventsOf(response)).map(({ type, code, delta, text }) => [type, code ?? delta ?? text]),
        [
          ['warning', 'streaming_unsupported'],
          ['transcript.text.delta', 'One. Two.'],
          ['transcript.text.done', 'One. Two.'],
        ],
      ),
  },
  {
    row: '7 malformed 400: an unknown model is malformed',
    fields: { model: 'x' },
    check: refused(400, 'malformed'),
  },
  {
    row: '7 network 503: a missing backend library carries no Retry-After',
    script: { engine: null },
    check: async (response) => {
      assert.equal(response.headers.get('retry-after'), null);
      await refused(503, 'network', { provider: 'multilingual' })(response);
    },
  },
];

for (const { row, fields, script, file, check } of ROWS) {
  test(row, async () => {
    await using gateway = await startGateway(script);
    const body = form(file === undefined ? speech : file, fields);
    await check(await post(gateway, body));
  });
}

test('7 network 503: a busy slot carries Retry-After: 5', async () => {
  let finish: () => void = () => undefined;
  await using gateway = await startGateway({
    transcribe: () =>
      new Promise((resolve) => {
        finish = () => resolve(heard(' Done.'));
      }),
  });
  const first = post(gateway, form(speech));
  await until('the first is running', () => gateway.running() === 1);
  const second = await post(gateway, form(speech));
  assert.equal(second.headers.get('retry-after'), '5');
  await refused(503, 'network', { provider: 'voxgate', code: 'slot_busy' })(second);
  finish();
  await ok(await first);
});
