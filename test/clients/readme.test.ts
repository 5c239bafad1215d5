/** The curl examples of the README do what it says. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { JFK, needsWeights, startRealGateway } from '../model/gateway.ts';

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8').replaceAll('\\\n', ' ');
const examples = readme.split('\n').filter((line) => line.startsWith('curl '));

test('the README has curl examples', () => assert(examples.length >= 3));

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
