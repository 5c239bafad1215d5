/** The command line as a whole: its written reference, its completion in real shells, and its pipes. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { cliDocument, manPage } from '../../scripts/cli-docs.ts';
import { shownCommands } from '../../src/cli/completion.ts';
import { createProgram } from '../../src/cli/program.ts';
import { program } from '../program.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const COMMAND = [process.execPath, ...program('src/main.ts')].join(' ');

let folder: string;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'voxgate-cli-test-'));
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = execFileSync('sh', ['-c', `${COMMAND} completion ${shell}`], { cwd: ROOT });
    writeFileSync(join(folder, shell), script);
  }
});
after(() => rmSync(folder, { recursive: true }));

test('docs/cli.md and the man page are the help of the commands', async () => {
  const tells = 'differs from the help: run npm run docs:cli';
  assert.equal(readFileSync(join(ROOT, 'docs/cli.md'), 'utf8'), cliDocument(await createProgram()), tells);
  assert.equal(readFileSync(join(ROOT, 'man/voxgate.1'), 'utf8'), manPage(await createProgram()), tells);
});

test('the man page can be read', () => {
  execFileSync('mandoc', ['-T', 'lint', '-W', 'error', join(ROOT, 'man/voxgate.1')]);
  const page = execFileSync('mandoc', ['-T', 'html', join(ROOT, 'man/voxgate.1')], { encoding: 'utf8' });
  assert.match(page, /--output-dir &lt;dir&gt; +write one transcript per file here/);
});

test('every command has a description and an example', async () => {
  for (const { path, command } of shownCommands(await createProgram())) {
    assert.notEqual(command.description(), '', path);
    if (path === '' || path.includes(' ')) continue;
    assert.match(cliDocument(command), /\nExamples:\n {2}\S/, path);
  }
});

/** What bash would offer for the last word. */
function inBash(...words: string[]): string[] {
  const script = `source ${folder}/bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _voxgate
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const args = ['--norc', '-c', script, 'bash', 'voxgate', ...words];
  return execFileSync('bash', args, { encoding: 'utf8' }).trim().split('\n');
}

/** What fish would offer at the end of a line. */
function inFish(line: string): string[] {
  const script = `source ${folder}/fish; complete -C '${line}'`;
  const text = execFileSync('fish', ['--no-config', '-c', script], { encoding: 'utf8', cwd: folder });
  return text
    .trim()
    .split('\n')
    .map((offer) => offer.split('\t')[0] ?? '');
}

for (const [words, offers] of [
  [['mod'], ['models']],
  [['models', 'p'], ['pull']],
  [['models', 'pull', 'multilingual-t'], ['multilingual-tiny']],
  [
    ['live', '--delay', 'm'],
    ['minimal', 'medium'],
  ],
  [['transcribe', '--output-d'], ['--output-dir']],
  [['transcribe', '--model', 'cj'], ['cjk']],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
] as const) {
  const line = `voxgate ${words.join(' ')}`;
  test(`bash and fish complete ${line} with ${offers.join(', ')}`, () => {
    const known = (found: string[]) => offers.filter((offer) => found.includes(offer));
    const [bash, fish] = [inBash(...words), inFish(line)];
    assert.deepEqual(known(bash), offers, String(bash));
    assert.deepEqual(known(fish), offers, String(fish));
    const last = words.at(-1) ?? '';
    for (const offer of [...bash, ...fish]) assert(offer.startsWith(last), offer);
  });
}

test('where a file is wanted, the shell offers its files', () => {
  assert.deepEqual(inBash('transcribe', ''), ['']);
  assert(inFish('voxgate transcribe ').includes('zsh'));
  assert(!inFish('voxgate models pull ').includes('zsh'));
});

test('zsh takes the script of bash', () => {
  const script = `autoload -U compinit && compinit -D; source ${folder}/zsh; print $_comps[voxgate]; whence -w _voxgate`;
  const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', script], { encoding: 'utf8' });
  assert.match(stdout, /_bash_complete.*-F _voxgate\n_voxgate: function/, stderr);
});

test('a reader that leaves, as head does, ends a command without a trace', () => {
  const line = `${COMMAND} config | head -n 1`;
  const { status, stdout, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', line], { encoding: 'utf8' });
  assert.deepEqual([status, stderr], [0, '']);
  assert.equal(stdout.trim().split('\n').length, 1);
  assert(!stdout.includes('\u001b'), 'no colors');
});

test('a model that is not there is told with the names that may be meant', () => {
  for (const command of ['models pull bas', 'models rm bas', 'models verify bas']) {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', `${COMMAND} ${command}`], {
      encoding: 'utf8',
      env: { ...process.env, SVC_MODEL_DIR: join(folder, 'models') },
    });
    assert.deepEqual([status, stdout], [1, ''], stderr);
    assert.match(
      stderr,
      /^There is no model "bas"\. Did you mean base \(or [^\n]+\)\? voxgate models list shows all of them\n$/,
    );
  }
});
