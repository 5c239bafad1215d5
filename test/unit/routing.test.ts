/** A request is served by a model that its name, its hint and the models on disk decide. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { ALL_WEIGHTS, CATALOGUE, findModel } from '../../src/models/catalogue.ts';
import { NAME_GROUPS } from '../../src/models/names.ts';
import { WHISPER_LANGUAGES } from '../../src/models/whisper-languages.ts';
import {
  MODEL_IDS,
  modelNamed,
  type RoutableModel,
  type RouteOptions,
  resolveName,
  route,
} from '../../src/transcription/routing.ts';
import { assertCheap } from '../cost.ts';

const settings = { defaultSize: 'small', aliases: {} };

function models(...installed: string[]): RoutableModel[] {
  return CATALOGUE.map((model) => ({
    ...model,
    servable: true,
    fits: true,
    installed: installed.includes(model.id),
  }));
}

function auto(language: string | undefined, installed: string[], translate = false) {
  const { model, reason } = route({ model: 'auto', language, translate }, models(...installed), settings);
  return [model.id, reason];
}

const everything = ['multilingual-small', 'european', 'cjk'];

for (const [language, expected] of [
  ['zh', ['cjk', 'auto:cjk-language']],
  ['yue', ['cjk', 'auto:cjk-language']],
  ['ja', ['cjk', 'auto:cjk-language']],
  ['ko', ['cjk', 'auto:cjk-language']],
  ['en', ['european', 'auto:european-language']],
  ['de', ['european', 'auto:european-language']],
  ['uk', ['european', 'auto:european-language']],
  ['ar', ['multilingual-small', 'auto:other-language']],
  ['tr', ['multilingual-small', 'auto:other-language']],
  ['ky', ['multilingual-small', 'auto:other-language']],
  [undefined, ['multilingual-small', 'auto:no-hint']],
] as const) {
  test(`auto with everything installed takes the best model for the hint ${language ?? 'none'}`, () => {
    assert.deepEqual(auto(language, everything), expected);
  });
}

test('a language that no model has leaves auto what is on disk, as without a hint', () => {
  assert.deepEqual(auto('ky', ['multilingual-base']), ['multilingual-base', 'auto:other-language-fallback']);
  assert.deepEqual(auto('ky', ['european']), ['european', 'auto:other-language-fallback']);
});

test('auto falls back to what is on disk', () => {
  assert.deepEqual(auto('zh', ['multilingual-base']), ['multilingual-base', 'auto:cjk-language-fallback']);
  assert.deepEqual(auto('de', ['multilingual-base', 'cjk']), [
    'multilingual-base',
    'auto:european-language-fallback',
  ]);
  assert.deepEqual(auto(undefined, ['multilingual-base']), ['multilingual-base', 'auto:no-hint-fallback']);
});

test('auto takes the next smaller size, then the next larger', () => {
  assert.equal(auto('ar', ['multilingual-tiny', 'multilingual-medium'])[0], 'multilingual-tiny');
  assert.equal(auto('ar', ['multilingual-medium', 'multilingual-large-v3'])[0], 'multilingual-medium');
});

test('auto downloads its preference only when nothing on disk can do it', () => {
  assert.equal(auto(undefined, [])[0], 'multilingual-small');
  assert.equal(auto('ko', [])[0], 'cjk');
});

test('auto leaves out what this build cannot run, and names its preference when it can run nothing', () => {
  const request = { model: 'auto', language: 'zh', translate: false };
  const without = (...families: string[]) =>
    models(...everything).map((m) => ({ ...m, servable: !families.includes(m.family) }));
  assert.equal(route(request, without('sensevoice'), settings).model.id, 'multilingual-small');
  assert.equal(route(request, without('sensevoice', 'whisper', 'parakeet'), settings).model.id, 'cjk');
});

test('auto with only another family on disk uses it when it has the language', () => {
  assert.equal(auto(undefined, ['european'])[0], 'european');
  assert.equal(auto('en', ['cjk'])[0], 'cjk');
});

test('auto chooses well for every hint and every combination of installed backends', () => {
  const backends = ['multilingual-base', 'multilingual-small', 'multilingual-large-v3', 'european', 'cjk'];
  const european = 'bg hr cs da nl en et fi fr de el hu it lv lt mt pl pt ro ru sk sl es sv uk'.split(' ');
  const [cjkHints, cjkLanguages] = [
    ['zh', 'yue', 'ja', 'ko'],
    ['zh', 'yue', 'ja', 'ko', 'en'],
  ];
  const sizes = ['multilingual-small', 'multilingual-base', 'multilingual-large-v3'];
  for (let set = 0; set < 2 ** backends.length; set++) {
    const installed = backends.filter((_, i) => set & (1 << i));
    for (const hint of [undefined, ...WHISPER_LANGUAGES]) {
      for (const translate of [false, true]) {
        const has = (id: string) =>
          hint === undefined ||
          id.startsWith('multilingual') ||
          (id === 'european' ? european : cjkLanguages).includes(hint);
        const first = translate
          ? []
          : hint !== undefined && cjkHints.includes(hint)
            ? ['cjk']
            : hint !== undefined && european.includes(hint)
              ? ['european']
              : [];
        const order = [
          ...first,
          ...sizes,
          ...(translate ? [] : ['european', 'cjk'].filter((id) => !first.includes(id))),
        ];
        const expected = order.find((id) => installed.includes(id) && has(id)) ?? order[0];
        const [chosen, reason] = auto(hint, installed, translate);
        assert.equal(chosen, expected, `hint ${hint}, translate ${translate}, installed ${installed}`);
        assert.equal(reason?.endsWith('-fallback'), chosen !== order[0]);
      }
    }
  }
});

test('translate goes to multilingual for every hint', () => {
  assert.deepEqual(auto('zh', everything, true), ['multilingual-small', 'auto:translate']);
});

for (const [size, languages] of [
  ['large-v3-turbo', 100],
  ['distil-large-v3', 1],
] as const) {
  test(`${size} knows as many languages as it was trained on, and is never taken to translate`, () => {
    const id = `multilingual-${size}`;
    assert.equal(findModel(id)?.languages.length, languages);
    for (const language of [undefined, 'en', 'de']) {
      assert.equal(auto(language, [id], true)[0], 'multilingual-small');
      assert.equal(auto(language, [id, 'multilingual-large-v3'], true)[0], 'multilingual-large-v3');
    }
  });
}

test('only English speech may go to the model that was distilled on it', () => {
  const distilled = ['multilingual-distil-large-v3'];
  assert.equal(auto('en', distilled)[0], 'multilingual-distil-large-v3');
  for (const language of ['de', 'ar', 'zh']) assert.notEqual(auto(language, distilled)[0], distilled[0]);
});

test('without a hint, auto takes no model that lacks one of the languages to choose among', () => {
  const among = (languages: string[], ...installed: string[]) => {
    const request = { model: 'auto', language: undefined, languages, translate: false };
    const { model, reason } = route(request, models(...installed), settings);
    return [model.id, reason];
  };
  assert.deepEqual(among(['de', 'fr'], 'european'), ['european', 'auto:no-hint-fallback']);
  assert.deepEqual(among(['de', 'ja'], 'european', 'cjk'), ['multilingual-small', 'auto:no-hint']);
  const [distilled, base] = ['multilingual-distil-large-v3', 'multilingual-base'];
  assert.equal(among(['de'], distilled)[0], 'multilingual-small');
  assert.equal(among(['en'], distilled)[0], distilled);
  assert.equal(among(['yue', 'en'], base)[0], base, 'Cantonese is near enough to what it knows');
  assert.equal(among(['ky', 'en'], distilled)[0], distilled, 'no model knows Kyrgyz');
});

test('an id and its aliases mean the same model', () => {
  const resolve = (model: string) =>
    route({ model, language: undefined, translate: false }, models(), settings);
  for (const name of [
    'multilingual-base',
    'whisper-base',
    'openai/whisper-base',
    'Systran/faster-whisper-base',
  ]) {
    const { model, reason } = resolve(name);
    assert.deepEqual([model.id, reason], ['multilingual-base', 'requested']);
  }
  assert.equal(resolve('turbo').model.id, 'multilingual-large-v3-turbo');
  assert.equal(resolve('openai/whisper-large').model.id, 'multilingual-large-v3');
  assert.equal(resolve('nvidia/parakeet-tdt-0.6b-v3').model.id, 'european');
  assert.equal(resolve('iic/SenseVoiceSmall').model.id, 'cjk');
  for (const name of [
    'whisper-1',
    'gpt-4o-transcribe',
    'gpt-4o-mini-transcribe',
    'gpt-4o-transcribe-diarize',
  ]) {
    assert.match(resolve(name).reason, /^auto:/);
  }
});

for (const name of [
  ...['gpt-transcribe', 'gpt-4o-mini-transcribe-2025-12-15', 'gpt-4o-transcribe-2025-03-20'],
  ...['openai/whisper-1', 'openai/gpt-4o-mini-transcribe-2025-12-15', 'gpt-live-transcribe'],
  ...['gpt-realtime-1.5', 'gpt-realtime-2', 'gpt-realtime-2.1', 'gpt-realtime-2.1-mini'],
  ...['gpt-realtime-2025-08-28', 'gpt-realtime-mini-2025-10-06', 'gpt-realtime-mini-2025-12-15'],
  ...['gpt-4o-realtime-preview-2024-10-01', 'gpt-4o-mini-realtime-preview-2024-12-17'],
])
  test(`${name}, a release of OpenAI's, means auto`, () => {
    const { reason } = route({ model: name, language: undefined, translate: false }, models(), settings);
    assert.equal(reason, 'auto:no-hint');
  });

for (const [size, ...names] of [
  ['tiny', 'tiny', 'tiny-int8', 'ggml-tiny', 'mlx-community/whisper-tiny-mlx-fp32'],
  ['base', 'base', 'whisper-base', 'openai/whisper-base', 'Systran/faster-whisper-base', 'base-int8'],
  ['base', 'ggml-base.bin', 'ggml-base-q8_0.bin', 'ggml-base-q5_1', 'mlx-community/whisper-base-mlx-8bit'],
  ['base', 'base.en', 'ggml-base.en.bin', 'mlx-community/whisper-base.en-mlx-q4', 'whisper-base-en-q5_1'],
  ['small', 'small', 'small.en', 'Systran/faster-whisper-small.en', 'openai/whisper-small.en'],
  ['small', 'distil-small.en', 'distil-whisper/distil-small.en', 'mlx-community/whisper-small-asr-fp16'],
  ['medium', 'medium', 'medium.en', 'Systran/faster-distil-whisper-medium.en', 'medium-int8'],
  ['large-v1', 'large-v1', 'whisper-large-v1'],
  ['large-v2', 'large-v2', 'guillaumekln/faster-whisper-large-v2', 'mlx-community/whisper-large-v2-mlx-fp32'],
  ['large-v3', 'large', 'large-v3', 'whisper-large-v3', 'openai/whisper-large-v3', 'whisper-v3'],
  ['large-v3', 'mlx-community/whisper-large-v3-mlx', 'ggml-large-v3-q5_0.bin', 'ggml-large-v3'],
  ['large-v3-turbo', 'turbo', 'large-v3-turbo', 'whisper-large-v3-turbo', 'openai/whisper-large-v3-turbo'],
  ['large-v3-turbo', 'deepdml/faster-whisper-large-v3-turbo-ct2', 'ggml-large-v3-turbo-q5_0.bin'],
  [
    'large-v3-turbo',
    'mobiuslabsgmbh/faster-whisper-large-v3-turbo',
    'whisper-v3-turbo',
    'whisper-large-turbo',
  ],
  ['large-v3-turbo', 'mlx-community/whisper-large-v3-turbo', 'mlx-community/whisper-large-v3-turbo-q4'],
  ['distil-large-v3', 'Systran/faster-distil-whisper-large-v3', 'distil-whisper/distil-large-v3'],
  ['distil-large-v3', 'distil-large-v3', 'distil-large-v2', 'distil-whisper/distil-large-v3.5-ct2'],
  ['distil-large-v3', 'distil-whisper-large-v3-en', 'mlx-community/distil-whisper-large-v3'],
] as const)
  test(`the names of the field for ${size} mean it: ${names.join(', ')}`, () => {
    for (const model of names) {
      const asked = route({ model, language: undefined, translate: false }, models(), settings);
      assert.deepEqual([asked.model.id, asked.reason], [`multilingual-${size}`, 'requested'], model);
    }
  });

test('the names of Parakeet and SenseVoice mean their models', () => {
  for (const [id, ...names] of [
    ['european', 'nvidia/parakeet-tdt-0.6b-v2', 'istupakov/parakeet-tdt-0.6b-v3-onnx'],
    ['european', 'mlx-community/parakeet-tdt-0.6b-v3', 'parakeet-tdt-0.6b-v3-int8'],
    ['cjk', 'SenseVoiceSmall', 'sensevoice-small', 'FunAudioLLM/SenseVoiceSmall'],
  ] as const)
    for (const model of names)
      assert.equal(route({ model, language: undefined, translate: false }, models(), settings).model.id, id);
});

test('a name for English only says the language, unless the request does', () => {
  const languageOf = (model: string, hints: { language?: string; languages?: string[] } = {}) =>
    route({ model, language: undefined, translate: false, ...hints }, models(), settings).language;
  for (const model of ['base.en', 'Systran/faster-whisper-small.en', 'ggml-tiny.en-q5_1.bin'])
    assert.equal(languageOf(model), 'en', model);
  for (const model of ['base', 'whisper-1', 'multilingual-base']) assert.equal(languageOf(model), undefined);
  assert.equal(languageOf('base.en', { language: 'de' }), undefined);
  assert.equal(languageOf('base.en', { languages: ['de', 'en'] }), undefined);
  assert.equal(languageOf('base.en', { languages: [] }), 'en');
});

for (const [id, ...names] of [
  ['tiny', 'tiny.en', 'tiny-en', 'whisper-tiny.en', 'openai/whisper-tiny.en', 'ggml-tiny.en-q8_0.bin'],
  ['base', 'base.en', 'Systran/faster-whisper-base.en', 'mlx-community/whisper-base.en-mlx-q4'],
  [
    'distil-small',
    'distil-small.en',
    'distil-whisper/distil-small.en',
    'Systran/faster-distil-whisper-small.en',
  ],
  ['distil-medium', 'distil-medium.en', 'distil-whisper/distil-medium.en'],
] as const)
  test(`${names.join(', ')} mean english-${id} once it is installed`, () => {
    for (const name of names) {
      const chosen = (language: string | undefined, options: RouteOptions = settings) =>
        route({ model: name, language, translate: false }, models(`english-${id}`), options).model.id;
      assert.equal(chosen(undefined), `english-${id}`, name);
      assert.equal(chosen('fr'), `english-${id}`, 'which refuses French');
      assert.equal(resolveName(name, {}).id, `english-${id}`);
      const other = `multilingual-${id.replace('distil-', '')}`;
      assert.equal(chosen(undefined, { ...settings, isAllowed: (model) => model.id === other }), other);
    }
  });

test('auto takes weights for English only for English, where no others can serve, and the most accurate', () => {
  assert.deepEqual(auto('en', ['english-tiny', 'english-small']), [
    'english-small',
    'auto:european-language-fallback',
  ]);
  assert.equal(auto('en', ['english-small', 'multilingual-tiny'])[0], 'multilingual-tiny');
  assert.equal(auto(undefined, ['english-small', 'cjk'])[0], 'cjk');
  for (const language of ['fr', 'ar', 'zh'])
    assert.doesNotMatch(auto(language, ['english-small'])[0] ?? '', /english/);
  assert.equal(auto('en', ['english-small'], true)[0], 'multilingual-small');
});

test('no name means two models, and none is the id of a model', () => {
  const names = NAME_GROUPS.flatMap(({ of, names }) =>
    names.flatMap((pattern) => Object.keys(of).map((name) => pattern.replace('*', name))),
  );
  assert.equal(new Set(names).size, names.length, 'each name is in the table once');
  const ids = new Set([...MODEL_IDS, ...ALL_WEIGHTS.map(({ id }) => id)]);
  for (const name of names) {
    assert(!ids.has(name), name);
    assert(MODEL_IDS.includes(resolveName(name, {}).id), name);
  }
});

test('an operator gets the model that requests with the name use, also one that they may not name', () => {
  const allowed = { ...settings, isAllowed: ({ id }: { id: string }) => id !== 'multilingual-base' };
  const named = (name: string, ...installed: string[]) => modelNamed(name, models(...installed), allowed)?.id;
  assert.equal(named('whisper-1', 'multilingual-tiny'), 'multilingual-tiny');
  assert.equal(named('whisper-1', 'multilingual-base', 'multilingual-tiny'), 'multilingual-tiny');
  assert.equal(named('base'), 'multilingual-base');
  assert.equal(named('whisper-1'), 'multilingual-small');
  for (const unknown of ['nope', 'voice-activity', 'constructor']) assert.equal(named(unknown), undefined);
});

test('an alias from the settings wins over a built-in one', () => {
  for (const model of ['whisper-1', 'gpt-4o-transcribe-2025-03-20', 'openai/whisper-1']) {
    const chosen = route({ model, language: undefined, translate: false }, models(), {
      ...settings,
      aliases: { [model]: 'multilingual-tiny' },
    });
    assert.equal(chosen.model.id, 'multilingual-tiny', model);
  }
});

test('an alias from the settings may stand for a built-in one', () => {
  const aliases = { mine: 'whisper-large', ours: 'whisper-1' };
  const chosen = (model: string) =>
    route({ model, language: undefined, translate: false }, models(), { ...settings, aliases });
  assert.equal(chosen('mine').model.id, 'multilingual-large-v3');
  assert.match(chosen('ours').reason, /^auto:/);
});

for (const [asked, nearest] of [
  ['multilingual-bse', 'multilingual-base'],
  ['wisper-1', 'whisper-1'],
  ['Multilingual-Small', 'multilingual-small'],
  ['gpt-4o-transcribe-2025', 'gpt-4o-transcribe'],
  ['gpt-4o-transcribe-2', 'gpt-4o-transcribe'],
  ['gpt-realtime-2.', 'gpt-realtime'],
  ['gpt-realtime-2-large', 'gpt-realtime'],
  ['azure/whisper-1', 'whisper-1'],
  ['multilingual-large', 'multilingual-large-v3, multilingual-large-v2, multilingual-large-v1'],
  ['multilingual-large', 'multilingual-large-v3-turbo'],
  ['whisper.cpp/base', 'base'],
  ['smal', 'small'],
  ['kotoba-large-v3', 'large-v3'],
  ['constructor', ''],
  ['__proto__', ''],
] as const) {
  test(`unknown model ${asked} is refused with the nearest names: ${nearest}`, () => {
    assert.throws(
      () => route({ model: asked, language: undefined, translate: false }, models(), settings),
      (error: unknown) => {
        assert(error instanceof GatewayError);
        assert.equal(error.kind, 'malformed');
        assert.equal(error.param, 'model');
        assert(error.message.includes(nearest));
        return true;
      },
    );
  });
}

test('an unknown model costs the same however long its name is', async () => {
  const model = 'multilingual-'.repeat(1024 * 1024);
  const refuse = () =>
    assert.throws(
      () => route({ model, language: undefined, translate: false }, models(), settings),
      ({ message }: Error) => message.includes('nearest are multilingual-') && message.length < 400,
    );
  await assertCheap('a name of 13 MiB', 50, refuse);
});

test('Cantonese is asked only of models that have it', () => {
  assert(findModel('multilingual-large-v3')?.languages.includes('yue'));
  assert(!findModel('multilingual-base')?.languages.includes('yue'));
});

/** The choice of `auto` when requests may use only these models. */
function autoAmong(allowed: string[], language: string | undefined, installed: string[], translate = false) {
  const options = { ...settings, isAllowed: ({ id }: { id: string }) => allowed.includes(id) };
  const { model, reason } = route({ model: 'auto', language, translate }, models(...installed), options);
  return [model.id, reason];
}

test('auto takes only models that requests may use, also where others suit better', () => {
  assert.deepEqual(autoAmong(['multilingual-base'], 'de', everything), [
    'multilingual-base',
    'auto:european-language-fallback',
  ]);
  assert.deepEqual(autoAmong(['cjk'], undefined, everything), ['cjk', 'auto:no-hint-fallback']);
  assert.deepEqual(autoAmong(['european'], 'zh', everything), ['european', 'auto:cjk-language-fallback']);
  assert.deepEqual(
    autoAmong(['multilingual-tiny', 'multilingual-medium'], undefined, ['multilingual-medium']),
    ['multilingual-medium', 'auto:no-hint-fallback'],
  );
  assert.deepEqual(autoAmong(['european'], undefined, [], true), ['european', 'auto:translate-fallback']);
});

test('auto aligns with a model that can align, whatever else is on disk', () => {
  const request = { model: 'auto', language: 'de', translate: false, text: 'Guten Tag.' };
  const { model, reason } = route(request, models('european', 'cjk'), settings);
  assert.deepEqual([model.id, model.aligns, reason], ['multilingual-small', true, 'auto:align']);
});

test('above the smallest size auto takes the next larger, not the largest', () => {
  const installed = models('multilingual-large-v3', 'multilingual-medium', 'multilingual-base');
  const request = { model: 'auto', language: 'ar', translate: false };
  const { model } = route(request, installed, { ...settings, defaultSize: 'tiny' });
  assert.equal(model.id, 'multilingual-base');
});
