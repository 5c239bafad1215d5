/** Damaged CTranslate2 folders are imported whole or refused; test/deep/ tries more of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzImports } from '../import-fuzz.ts';

test('an import of any 150 damaged CTranslate2 folders ends, with a file or with a refusal', async () => {
  const { imported, refused } = await fuzzImports(1, 150);
  assert.equal(imported + refused, 150);
  assert(imported > 7 && refused > 50, `${imported} imported, ${refused} refused`);
});
