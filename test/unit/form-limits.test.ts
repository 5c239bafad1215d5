/** The names and fields of a form are refused before they cost anything. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Response } from 'express';
import fc from 'fast-check';
import multer from 'multer';
import { GatewayError } from '../../src/errors.ts';
import { formRefusal } from '../../src/http/upload/form-refusal.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { assertCheap } from '../cost.ts';
import { formRequest, readParts } from '../form-request.ts';

type Fields = readonly (readonly [name: string, value: string])[];
type Form = keyof typeof BUDGETS.form;

const FORMS = Object.keys(BUDGETS.form) as Form[];

/** Parses fields as the endpoint does: of a transcription with all of these names known, or of the admin pages. */
async function parse(fields: Fields, form: Form = 'transcription'): Promise<Record<string, unknown>> {
  const parts = fields.map(([name, value]) => ({ name, value }));
  const limits = BUDGETS.form[form];
  try {
    if (form === 'transcription') {
      const known = new Set(fields.map(([name]) => name.replace(/\[.*/s, '')));
      return { ...(await readParts(parts, [...known])).fields };
    }
    const req = formRequest(parts);
    await new Promise<void>((resolve, reject) => {
      multer({ limits }).none()(req, {} as Response, (error: unknown) => (error ? reject(error) : resolve()));
    });
    return { ...req.body };
  } catch (error) {
    throw error instanceof GatewayError ? error : formRefusal(error, limits);
  }
}

async function refusal(fields: Fields, form?: Form): Promise<GatewayError> {
  try {
    await parse(fields, form);
  } catch (error) {
    assert(error instanceof GatewayError, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: 'it was accepted' });
}

test('names as clients write them become a value, a list in three spellings, and an object', async () => {
  const members = { type: 'server_vad', silence_duration_ms: '200' };
  const fields: Fields = [
    ['model', 'auto'],
    ['keywords[]', 'one'],
    ['languages', 'de'],
    ['languages', 'en'],
    ['include[0]', 'logprobs'],
    ...Object.entries(members).map(([name, value]) => [`chunking_strategy[${name}]`, value] as const),
  ];
  const { chunking_strategy, ...others } = await parse(fields);
  assert.deepEqual({ ...(chunking_strategy as object) }, members);
  const expected = { model: 'auto', keywords: ['one'], languages: ['de', 'en'], include: ['logprobs'] };
  assert.deepEqual(others, expected);
});

for (const [what, name, said] of [
  ['an index of 30 million', 'keywords[30000000]', 'array index too large (at most 99)'],
  ['the highest index', 'keywords[4294967294]', 'array index too large (at most 99)'],
  ['an index beyond every number', `model[${'9'.repeat(90)}]`, 'array index too large (at most 99)'],
  ['two levels', 'model[a][b]', 'nesting too deep (at most 1)'],
  ['two levels of lists', 'languages[0][]', 'nesting too deep (at most 1)'],
  ['thousands of levels', `model${'[b]'.repeat(5000)}`, 'name too long (at most 100)'],
  ['101 characters', 'n'.repeat(101), 'name too long (at most 100)'],
  ['no characters', '', 'name missing'],
] as const) {
  test(`a field name with ${what} is refused with the reason, at little cost`, async () => {
    const error = await refusal([[name, 'x']], 'admin');
    assert.equal(error.kind, 'malformed');
    assert.equal(error.code, 'invalid_form');
    assert(error.message.endsWith(said), error.message);
    assert((error.param ?? '').length < 100);
    await assertCheap(what, 50, () => refusal([[name, 'x']], 'admin'));
  });
}

for (const [what, name, read] of [
  ['an index of 30 million', 'keywords[30000000]', ['x']],
  ['the highest index', 'keywords[4294967294]', ['x']],
  ['an index beyond every number', `keywords[${'9'.repeat(5000)}]`, ['x']],
  ['two levels', 'model[a][b]', 'model'],
  ['thousands of levels', `model${'[b]'.repeat(5000)}`, 'model'],
] as const)
  test(`in a transcription a known name with ${what} makes no structure of it, at little cost`, async () => {
    const outcome = await parse([[name, 'x']]).catch((error) => error);
    if (typeof read === 'string') assert.deepEqual([outcome.code, outcome.param], ['invalid_value', read]);
    else assert.deepEqual(outcome, { keywords: read });
    await assertCheap(what, 50, () => parse([[name, 'x']]).catch(() => undefined));
  });

test('a part of a transcription without a name is refused', async () => {
  const error = await refusal([['', 'x']]);
  assert.equal(error.code, 'invalid_form');
  assert(error.message.endsWith('name missing'), error.message);
});

test('a form may have as many fields and bytes as allowed, and no more', async () => {
  for (const form of FORMS) {
    const { fields: count, fieldSize } = BUDGETS.form[form];
    const some = (n: number): Fields => Array.from({ length: n }, (_, i) => [`f${i}`, 'x']);
    assert.equal(Object.keys(await parse(some(count), form)).length, count);
    const tooMany = await refusal(some(count + 1), form);
    assert.equal(tooMany.code, 'invalid_form');
    assert.match(tooMany.message, new RegExp(`Too many \\w+ \\(at most ${count}\\)$`));
    await parse([['prompt', 'a'.repeat(fieldSize)]], form);
    const tooLong = await refusal([['prompt', 'a'.repeat(fieldSize + 1)]], form);
    assert.deepEqual([tooLong.code, tooLong.param], ['invalid_value', 'prompt']);
    assert.match(tooLong.message, new RegExp(`"prompt" .*at most ${fieldSize} bytes`));
  }
});

test('a refusal shows the beginning of a name', async () => {
  const error = await refusal([['n'.repeat(15_000), 'a'.repeat(70_000)]]);
  assert(error.message.length < 300 && (error.param ?? '').length < 100);
});

test('every form of names gives values, lists and objects of them, or a refusal, and changes nothing else', async () => {
  const piece = fc.constantFrom(
    '[',
    ']',
    '[]',
    '[0]',
    '[7]',
    '[a]',
    '[__proto__]',
    '[constructor]',
    '[length]',
    'a',
    '0',
  );
  const first = fc.constantFrom('a', 'keywords', '__proto__', 'constructor', 'toString', '');
  const name = fc.tuple(first, fc.array(piece, { maxLength: 4 })).map(([head, rest]) => head + rest.join(''));
  const isFlat = (value: unknown) => typeof value === 'string' || Array.isArray(value);
  const isOne = (value: unknown) =>
    isFlat(value) || (typeof value === 'object' && Object.values(value ?? {}).every(isFlat));
  await fc.assert(
    fc.asyncProperty(
      fc.array(name, { minLength: 1, maxLength: 6 }),
      fc.constantFrom(...FORMS),
      async (names, form) => {
        try {
          const parsed = await parse(
            names.map((n) => [n, 'x']),
            form,
          );
          for (const value of Object.values(parsed)) {
            if (Array.isArray(value)) assert(value.length <= 100 && value.every(isOne));
            else assert(isOne(value));
          }
        } catch (error) {
          assert(error instanceof GatewayError, String(error));
          assert(['invalid_form', 'invalid_value'].includes(error.code), error.code);
        }
        assert.deepEqual(Object.keys(Object.prototype), []);
        assert.equal(({} as Record<string, unknown>).a, undefined);
      },
    ),
  );
});
