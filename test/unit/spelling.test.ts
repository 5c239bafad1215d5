/** Documents, comments, messages and names have one spelling, the American one. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = new URL('../../', import.meta.url).pathname;
const FOLDERS = '.github assets bench cmake deploy docs examples native scripts src test'.split(' ');
const TEXT = /\.(md|ts|mjs|js|py|sh|cpp|h|cmake|txt|css|html|svg|ya?ml)$/;

/** These British words have a reason to be there. */
const ALLOWED: Readonly<Record<string, { files: readonly string[]; because: string }>> = {
  analyse: { files: ['test/unit/patterns.test.ts'], because: 'a function of the package scslre' },
  quantised: {
    files: ['src/models/records.ts', 'test/unit/models-store.test.ts'],
    because: 'an earlier version wrote it into records that are still read',
  },
};

/** `cancelled`, an error kind of the API, is not among them. */
const BRITISH = [
  /^(?!(.*w|adv|advert|ar|br?u|compr|comprom|conc|cr?u|dev|disgu|enterpr|exc|exerc|expert|gu|imprec|improv|inc|no|po|pra|prec|prem|prom|ra|rev|r|superv|surm|surpr|telev|v|madv)is).{2,}is(e|ed|es|ing|ations?)$/,
  /(behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|rum|vap)our/,
  /^(cent|fib|lit|theat|(kilo|milli)?met)(re|red|res)$/,
  /(channel|dial|label|level|marshal|model|panel|signal|spiral|total|travel|tunnel)l(ed|er|ing)$/,
  /^(defence|licence|offence|pretence)s?$|^practis(e|ed|es|ing)$|(ana|para)lys(e|ed|ing)$/,
  /^(ageing|amongst|artefacts?|enrol|fulfil|grey|judgement|learnt|manoeuvre|mould|programmes?|(mis)?spelt|whilst)$/,
];

const files = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(folder, String(name))),
  ),
].filter((path) => TEXT.test(path) && !path.includes('node_modules') && !path.endsWith('spelling.test.ts'));

/** Lists the words in lower case; `summariseAll` and `summarise_all` are two words each. */
const wordsOf = (text: string): string[] =>
  text
    .replace(/([a-z])(?=[A-Z])/g, '$1 ')
    .toLowerCase()
    .match(/[a-z]+/g) ?? [];

const isBritish = (word: string) => BRITISH.some((pattern) => pattern.test(word));

test('British words are told from American ones', () => {
  const british = `serialise recognised quantising normalisation optimises colour behaviours favourite neighbouring
    centre metres labelled modelling licence practised analysed grey whilst misspelt summariseAll`;
  const american = `serialize recognized otherwise clockwise promise noise raised precise exercises supervised revising
    color hour four your contour centered label labels cancelled license analyses spelled advertised`;
  assert.deepEqual(
    wordsOf(british).filter((word) => !isBritish(word)),
    ['all'],
  );
  assert.deepEqual(wordsOf(american).filter(isBritish), []);
});

test('every British word in a file has a reason', () => {
  assert(files.length > 300, `only ${files.length} files were found`);
  const found = files.flatMap((path) =>
    [...new Set(wordsOf(`${path} ${readFileSync(join(ROOT, path), 'utf8')}`))]
      .filter((word) => isBritish(word) && !ALLOWED[word]?.files.includes(path))
      .map((word) => `${path}: ${word}`),
  );
  assert(found.length === 0, found.join('\n'));
});

test('every word that is allowed is still there', () => {
  for (const [word, { files: places, because }] of Object.entries(ALLOWED)) {
    for (const path of places)
      assert(
        wordsOf(readFileSync(join(ROOT, path), 'utf8')).includes(word),
        `${path} has no ${word} (${because})`,
      );
  }
});
