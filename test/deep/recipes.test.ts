/** Every recipe of docs/recipes is followed to the letter in a copy of the tree, so that none goes stale. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { needsWeights } from '../model/gateway.ts';
import { applyDiff, parseRecipe, type Step } from '../recipes/recipe.ts';
import { createWorkingCopy, type WorkingCopy } from '../recipes/working-copy.ts';

const RECIPES = new URL('../../docs/recipes/', import.meta.url).pathname;
const names = readdirSync(RECIPES).filter((name) => name.endsWith('.md'));

test('docs/recipes holds at least two recipes', () => assert(names.length >= 2));

for (const name of names) {
  test(`docs/recipes/${name} works when it is followed step by step`, async (t) => {
    const steps = parseRecipe(readFileSync(join(RECIPES, name), 'utf8'));
    const tells = (what: string) => steps.some((step) => 'command' in step && step.command.includes(what));
    if (tells('models pull') && !needsWeights(t)) return;
    const ownBuild = tells('build -- native');
    await using copy = createWorkingCopy({ ownBuild });
    let address: string | null = null;
    for (const step of steps) {
      const startedAt = Date.now();
      const where = `docs/recipes/${name}:${step.line}`;
      try {
        if (step.does === 'serve') address = await copy.serve(step.command);
        else if (step.does === 'run') await follow(copy, step, address);
        else edit(copy, step);
      } catch (error) {
        throw new Error(`${where} cannot be followed: ${(error as Error).message}`, { cause: error });
      }
      t.diagnostic(`${where}: ${Date.now() - startedAt} ms`);
    }
  });
}

function edit({ dir }: WorkingCopy, step: Extract<Step, { path: string }>): void {
  const path = join(dir, step.path);
  if (step.does === 'change') {
    writeFileSync(path, applyDiff(readFileSync(path, 'utf8'), step.text));
  } else {
    assert(!existsSync(path), `${step.path} is there already`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, step.text);
  }
}

async function follow(
  copy: WorkingCopy,
  { command, fails, answer }: Extract<Step, { does: 'run' }>,
  address: string | null,
): Promise<void> {
  const served = 'http://127.0.0.1:8000';
  assert(address !== null || !command.includes(served), 'no gateway was started');
  const { code, stdout, output } = await copy.run(command.replaceAll(served, address ?? served));
  if (fails === null) assert.equal(code, 0, `${command}${output}`);
  else {
    assert.notEqual(code, 0, `${command} succeeds, where it should fail`);
    assert(output.includes(fails), `${command} fails, but not with ${fails}:\n${output}`);
  }
  if (answer !== null) assert.equal(stdout.trim(), answer.trim());
}
