/** Damaged CTranslate2 folders, as test/unit/models-import-fuzz.test.ts tries them, with other seeds and many more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fuzzImports } from '../import-fuzz.ts';

for (const seed of [2, 3]) {
  test(`an import of any 3,000 damaged CTranslate2 folders ends, with a file or with a refusal: seed ${seed}`, async () => {
    const { imported, refused } = await fuzzImports(seed, 3000);
    assert.equal(imported + refused, 3000);
    assert(imported > 150 && refused > 1000, `${imported} imported, ${refused} refused`);
  });
}
