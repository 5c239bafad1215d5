/** Languages are known by code and by name, as clients give them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CATALOGUE } from '../../src/models/catalogue.ts';
import { choicesOf, languageFor } from '../../src/transcription/language/choice.ts';
import { languageName, namesNoLanguage, parseLanguage } from '../../src/transcription/language/names.ts';

for (const [text, code] of [
  ['en', 'en'],
  ['EN', 'en'],
  ['English', 'en'],
  ['pt-BR', 'pt'],
  ['zh_Hant_TW', 'zh'],
  ['cmn', 'zh'],
  ['Mandarin', 'zh'],
  ['haitian creole', 'ht'],
  [' de ', 'de'],
  ['ky', 'ky'],
  ['Irish', 'ga'],
  ['tlh', 'tlh'],
  ['deu', 'de'],
  ['ger', 'de'],
  ['jpn', 'ja'],
  ['iw', 'he'],
  ['nob', 'no'],
  ['jv', 'jw'],
  ['wuu', 'zh'],
  ['nan', 'zh'],
  ['hak-TW', 'zh'],
  ['gan', 'zh'],
  ['hsn', 'zh'],
  ['Hakka Chinese', 'zh'],
  ['yue', 'yue'],
  ['Kanuri', 'kr'],
  ['kau', 'kr'],
  ['sme', 'se'],
  ['klingon', undefined],
  ['kr', undefined],
  ['se', undefined],
  ['jp', undefined],
  ['und', undefined],
  ['qaa', undefined],
  ['', undefined],
  ['constructor', undefined],
  ['__proto__', undefined],
] as const) {
  test(`language "${text}" is ${code ?? 'refused'}`, () => assert.equal(parseLanguage(text), code));
}

test('no language is named by nothing, auto, und and mul, with a script or region as well', () => {
  for (const text of ['', ' ', 'auto', 'AUTO', 'und', 'mul', 'und-Latn', 'und_US'])
    assert(namesNoLanguage(text), text);
  for (const text of ['en', '-', 'automatic', 'undefined', 'mult']) assert(!namesNoLanguage(text), text);
});

test('every two-letter code that has a name in CLDR is taken, but for two that mean a country, and so is that name', () => {
  const names = new Intl.DisplayNames('en', { type: 'language', fallback: 'none' });
  const letters = [...'abcdefghijklmnopqrstuvwxyz'];
  const codes = letters.flatMap((a) => letters.map((b) => a + b)).filter((code) => names.of(code));
  assert(codes.length > 180, `${codes.length} codes`);
  for (const code of codes) {
    assert.equal(parseLanguage(code) === undefined, ['kr', 'se'].includes(code), code);
    assert(parseLanguage(names.of(code) ?? ''), names.of(code));
  }
});

test('every language of every model is parsed to itself, by code and by name', () => {
  for (const code of new Set(CATALOGUE.flatMap(({ languages }) => languages))) {
    assert.equal(parseLanguage(code), code);
    assert.equal(parseLanguage(languageName(code)), code);
  }
});

test('a model that does not know Cantonese may choose Chinese for it, among the others', () => {
  const found = CATALOGUE.find(({ id }) => id === 'multilingual-base');
  assert(found && !found.languages.includes('yue'));
  const base = { ...found, servable: true, fits: true, installed: true };
  assert.deepEqual([...choicesOf(base, ['yue', 'en'])].sort(), ['en', 'zh']);
  assert.deepEqual(choicesOf(base, ['yue']), ['zh']);
  const english = { ...base, languages: ['en'] };
  assert.equal(languageFor({ model: base, reason: 'language' } as never, 'yue'), 'zh');
  assert.equal(languageFor({ model: english, reason: 'language' } as never, 'yue'), undefined);
  assert.deepEqual(choicesOf(base, ['tlh']), base.languages);
});
