/** Names of models in the settings stop the start where no model has them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkModelSettings } from '../../src/cli/model-settings.ts';
import { ConfigError, readConfig } from '../../src/config/config.ts';

const check = (env: Record<string, string>) => checkModelSettings(readConfig(env).config);

test('ids, built-in aliases, aliases of the settings and auto can be preloaded', () => {
  check({});
  check({ SVC_MODEL_PRELOAD: 'multilingual-base, cjk, whisper-small, auto' });
  check({ SVC_MODEL_PRELOAD: 'base, turbo', SVC_MODEL_ALLOW: 'small.en, ggml-base.bin' });
  check({ SVC_MODEL_PRELOAD: 'mine', SVC_MODEL_ALIASES: 'mine=european' });
});

test('an alias may stand for an id, for auto or for a built-in alias', () => {
  check({ SVC_MODEL_ALIASES: 'a=multilingual-large-v3,b=auto,c=whisper-small,d=base,whisper-1=cjk' });
});

test('an id of a model cannot be given to another', () => {
  for (const pair of ['auto=cjk', 'european=multilingual-base'])
    assert.throws(
      () => check({ SVC_MODEL_ALIASES: pair }),
      new ConfigError(
        `SVC_MODEL_ALIASES cannot hold "${pair}": ${pair.split('=')[0]} is the id of a model already`,
      ),
    );
});

test('the speech model has no name of a model that transcribes', () => {
  check({ SVC_TTS_MODEL_ID: 'tts-1' });
  for (const id of ['auto', 'whisper-1', 'multilingual-small', 'whisper-small', 'mine'])
    assert.throws(
      () => check({ SVC_TTS_MODEL_ID: id, SVC_MODEL_ALIASES: 'mine=cjk' }),
      new ConfigError(`SVC_TTS_MODEL_ID cannot be "${id}": the name is one of a model that transcribes`),
    );
});

for (const [setting, value, nearest] of [
  ['SVC_MODEL_PRELOAD', 'multilingual-bse', /multilingual-base/],
  ['SVC_MODEL_PRELOAD', 'cjk,voice-activity', /nearest are/],
  ['SVC_MODEL_PRELOAD', 'Multilingual-Base', /multilingual-base/],
  ['SVC_MODEL_ALLOW', 'cjk,europan', /european/],
  ['SVC_MODEL_ALIASES', 'x=nope', /nearest are/],
  ['SVC_MODEL_ALIASES', 'x=european,y=x', /nearest are/],
] as const) {
  test(`${setting}=${value} is refused with a sentence that names it and the nearest ids`, () => {
    assert.throws(
      () => check({ [setting]: value }),
      (error: unknown) => {
        assert(error instanceof ConfigError);
        assert.match(error.message, nearest);
        const wrong = value.split(',').at(-1) ?? '';
        assert(error.message.startsWith(`${setting} cannot hold "${wrong}": `), error.message);
        return true;
      },
    );
  });
}
