/** The curl examples of the README and of the guide for other servers' users do what these say. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { JFK, needsWeights, startRealGateway } from '../model/gateway.ts';

const examples = ['README.md', 'docs/migration.md'].flatMap((page) => {
  const text = readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8').replaceAll('\\\n', ' ');
  const lines = text.split('\n').filter((line) => line.startsWith('curl '));
  assert(lines.length >= 3, `${page} has no examples`);
  return lines;
});

for (const example of examples) {
  test(example, async (t) => {
    if (!needsWeights(t)) return;
    await using gateway = await startRealGateway();
    const command = example.replaceAll('http://127.0.0.1:8000', gateway.base).replaceAll('speech.mp3', JFK);
    const { stdout } = await promisify(execFile)('sh', [
      '-c',
      command.replace('curl', 'curl -sS --fail-with-body'),
    ]);
    assert(stdout.includes('ask not what your country') || stdout.includes('"auto"'), stdout);
  });
}
