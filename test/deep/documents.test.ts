/**
 * Each shell command of the documents does what they say, against a real gateway and the built program. A comment behind
 * a curl is a part of its answer; the others transcribe. A command that cannot run here stands in ELSEWHERE with the test
 * that runs it, so that a new one needs a decision. recipes.test.ts follows the recipes, and benches.test.ts measures.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from '../../bench/common/processes.ts';
import { readConfig } from '../../src/config/config.ts';
import { DIARIZATION } from '../../src/models/catalogue.ts';
import { answers } from '../http/served.ts';
import { JFK, needsWeights, type RealGateway, startRealGateway } from '../model/gateway.ts';
import { until } from '../until.ts';
import { type DocumentCommand, documentCommands } from './document-commands.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Commands by how they begin, and a piece of the test that runs them: in it, so that neither is left behind. */
const ELSEWHERE: Readonly<Record<string, [file: string, piece: string]>> = {
  'npm install -g ': ['test/deep/package.test.ts', "'install'"],
  'npm run dev': ['test/recipes/dev.test.ts', 'npm run dev'],
  'npm run release': ['test/deep/release.test.ts', 'dry-run'],
  'npm run quickstart': ['test/http/commands.test.ts', 'quickstart'],
  'npm run build -- vulkan': ['scripts/check-deep.mjs', "'vulkan'"],
  'docker ': ['test/deep/image.test.ts', 'Dockerfile'],
  "echo 'set server inference/gateway1 state drain' | socat": ['test/deep/scale.test.ts', 'state drain'],
  'npx voxgate models import': ['test/deep/models-import.test.ts', 'import'],
  'voxgate models import': ['test/deep/models-import.test.ts', 'import'],
  "node --import tsx --test --test-name-pattern='busy'": ['test/http/proxies.test.ts', 'busy'],
  'npx voxgate replay': ['test/http/commands.test.ts', 'replay'],
  'voxgate replay': ['test/http/commands.test.ts', 'replay'],
  'npm run build -- cuda': ['test/deep/cuda.test.ts', 'build -- cuda'],
  'npm run bench -- gpu': ['test/deep/cuda.test.ts', 'bench -- gpu'],
  'voxgate completion': ['test/http/cli.test.ts', 'complete -C'],
  'voxgate build': ['test/deep/package.test.ts', 'voxgate build'],
};

/** What stands for what is not here: files, a sound card, the network, models of hundreds of megabytes. */
const STAND_INS: readonly [RegExp, string][] = [
  [/npx /g, ''],
  [/ \[--json\]/, ' --json'],
  [/multilingual-small|multilingual-tiny|whisper-large-v3-turbo/g, 'multilingual-base'],
  [/models (pull|check) european/, 'models $1 multilingual-base'],
  [/curl -sN http:\/\/radio\.example\/stream/, 'cat talk.mp3'],
  [
    /parec --raw --format=s16le --channels=1 --rate=16000|arecord -q -f S16_LE -r 16000 -t raw/,
    'ffmpeg -v error -i talk.mp3 -f s16le -ac 1 -ar 16000 -',
  ],
  [/voxgate live --language en$/, 'voxgate live --language en talk.mp3'],
  [/voxgate live$/, 'voxgate live talk.mp3'],
  [/voxgate live(?!.*--url)/, 'voxgate live --url http://127.0.0.1:8000'],
  [/http:\/\/gateway:8000/, 'http://127.0.0.1:8000'],
  [/\bDIR\b/, 'recordings'],
  [/\| jq \.\w+$/, '| grep -q checks'],
];

const pages = ['.', 'docs', 'examples'].flatMap((dir) =>
  readdirSync(join(ROOT, dir))
    .filter((name) => name.endsWith('.md') && name !== 'benchmarks.md')
    .map((name) => join(dir, name)),
);
const commands = pages.flatMap((page) => documentCommands(page, read(page)));
const checks = ['scripts/check.mjs', 'scripts/check-deep.mjs'].map(read).join();

/** Whether CI runs the npm script itself, possibly with other arguments. */
function isInCheck(command: string): boolean {
  const [, script = ''] = /^npm (?:run )?(\S+)/.exec(command) ?? [];
  return command.startsWith('npm') && (script.startsWith('check') || checks.includes(`'${script}'`));
}

const begins = <T>(table: Readonly<Record<string, T>>, command: string): T | undefined =>
  Object.entries(table).find(([start]) => command.startsWith(start))?.[1];

const isServing = (command: string) => /(^|\s)(npm start|voxgate serve)\b/.test(command);
const isOurs = (command: string) => /\bvoxgate\b|\bcurl /.test(command) || isServing(command);
const isHere = ({ command }: DocumentCommand) => !isInCheck(command) && !begins(ELSEWHERE, command);

const speech = readFileSync(JFK);
/** The first 4 of 11 s: a live session takes as long as its audio. */
const FIRST_WORDS = speech.subarray(0, (4 / 11) * speech.length);

let dir: string;
let env: NodeJS.ProcessEnv;
let gateway: RealGateway | undefined;

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'voxgate-documents-'));
  const bin = join(dir, 'bin');
  for (const folder of [bin, join(dir, 'models'), join(dir, 'recordings')]) mkdirSync(folder);
  symlinkSync(join(ROOT, 'dist/main.js'), join(bin, 'voxgate'));
  for (const name of ['speech.mp3', 'call.wav', 'film.mkv', 'recordings/meeting.wav'])
    cpSync(JFK, join(dir, name));
  for (const name of ['ann.wav', 'talk.mp3', 'talk.mov', 'interview.mp3'])
    writeFileSync(join(dir, name), FIRST_WORDS);
  env = {
    ...process.env,
    PATH: `${bin}:${process.env.PATH}`,
    SVC_MODEL_DIR: join(dir, 'models'),
    SVC_MODEL_DEFAULT_SIZE: 'base',
    SVC_OBS_LOG_DIR: join(dir, 'logs'),
    SVC_CRASH_DIR: join(dir, 'crashes'),
  };
});
/** Each command finds the weights of this machine, which those before it may have removed. */
beforeEach(() => {
  const { modelDir } = readConfig().config;
  for (const name of existsSync(modelDir) ? readdirSync(modelDir) : []) {
    const [from, to] = [join(modelDir, name), join(dir, 'models', name)];
    if (existsSync(to)) continue;
    try {
      linkSync(from, to);
    } catch {
      cpSync(from, to); // another file system
    }
  }
});
after(async () => {
  await gateway?.[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

test('the commands of the documents are found', () => {
  assert(commands.length > 60, `only ${commands.length}`);
  for (const page of [
    'README.md',
    'CONTRIBUTING.md',
    'docs/cli.md',
    'docs/migration.md',
    'docs/operations.md',
  ])
    assert(
      commands.some((command) => command.page === page),
      page,
    );
});

test('what is run elsewhere is run there, and no document has lost it', () => {
  for (const [start, [file, piece]] of Object.entries(ELSEWHERE))
    assert(read(file).includes(piece), `${file} does not run: ${start}`);
  for (const start of Object.keys(ELSEWHERE))
    assert(
      commands.some(({ command }) => command.startsWith(start)),
      `no document has: ${start}`,
    );
});

for (const { page, command, comment } of commands.filter(isHere)) {
  test(`${page}: ${command}`, { timeout: 120_000 }, async (t) => {
    assert(isOurs(command), 'Nothing runs this: ELSEWHERE in this file names the test that does');
    if (!needsWeights(t, DIARIZATION.id)) return;
    if (isServing(command)) return await assertServes(command);
    gateway ??= await startRealGateway();
    const here = STAND_INS.reduce((text, [from, to]) => text.replace(from, to), command)
      .replaceAll('http://127.0.0.1:8000', gateway.base)
      .replace(/(^|\| )curl /, '$1curl -sS --fail-with-body ');
    const { stdout } = await promisify(execFile)('bash', ['-o', 'pipefail', '-c', here], { cwd: dir, env });
    if (!/(^|\| )curl [^|]*$/.test(command)) return;
    const expected =
      comment === ''
        ? ['ask not what your country', '"auto"', '"multilingual-base"', '"value":"ek_']
        : [comment];
    assert(
      expected.some((part) => stdout.includes(part)),
      stdout,
    );
  });
}

/** Starts it, asks for its health, and ends it as an operator does. */
async function assertServes(command: string): Promise<void> {
  const port = await freePort();
  const here = command
    .replace(/^npx /, '')
    .replace(/SVC_PORT=\d+/, `SVC_PORT=${port}`)
    .replace('npm start', `npm --prefix ${ROOT} start`);
  const child = spawn('bash', ['-c', here], {
    cwd: dir,
    env: { ...env, SVC_PORT: `${port}` },
    stdio: 'ignore',
    detached: true,
  });
  try {
    await until('it answers', () => answers(`http://127.0.0.1:${port}`), 30_000);
  } finally {
    await end(child);
  }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('close', resolve));
  if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
  else return;
  await ended;
}
