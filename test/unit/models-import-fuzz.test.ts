/** Damaged CTranslate2 folders are imported whole or refused; test/deep/ tries more of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzImports } from '../import-fuzz.ts';

test('an import of any 400 damaged CTranslate2 folders ends, with a file or with a refusal', async () => {
  const { imported, refused } = await fuzzImports(1, 400);
  assert.equal(imported + refused, 400);
  assert(imported > 20 && refused > 150, `${imported} imported, ${refused} refused`);
});
