/** A model file that changes while it is loaded: the load fails, or the model is the one that the file held before. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { writeWeights } from '../faults/fail-nth/weights.ts';
import { compilePreloadLibrary } from '../preload-library.ts';
import { chunkOptions, temporaryFile } from './fixtures.ts';

const { path: library, skip } = compilePreloadLibrary(
  new URL('./change-file.c', import.meta.url),
  dirname(temporaryFile()),
);
const dir = mkdtempSync(join(tmpdir(), 'voxgate-changing-'));
after(() => rmSync(dir, { recursive: true, force: true }));

const addonUrl = new URL('../../src/engine/addon.ts', import.meta.url).href;
const FILES = {
  whisper: 'multilingual-base',
  parakeet: 'european',
  sensevoice: 'cjk',
  silero: 'voice-activity',
};
/** The number of reads of a file before which it changes, spread over all of them. */
const PLACES = 6;

interface Outcome {
  how: string;
  /** Before this read of `reads` the file changed. */
  nth: number;
  reads: number;
  result: string;
}

/** Loads the model again and again, in one process, and lets its file change before one read after the other. */
function loadWhileChanging(family: string, file: string): Outcome[] {
  const [path, count] = [join(dir, `changing-${family}.bin`), temporaryFile(Buffer.alloc(4))];
  const script = `
    import { copyFileSync, readFileSync, utimesSync } from 'node:fs';
    import { loadNative } from '${addonUrl}';
    const native = loadNative();
    const silero = '${family}' === 'silero';
    const load = () => silero ? native.loadVoiceActivity({ path: '${path}' })
      : native.loadModel({ family: '${family}', path: '${path}', device: 'cpu', threads: 1 });
    const speech = Float32Array.from({ length: 16_000 }, (_, i) => 0.1 * Math.sin(i / 7));
    const options = { ...${JSON.stringify(chunkOptions)}, maxTokens: 0 };
    async function outcome(change) {
      copyFileSync('${file}', '${path}');
      utimesSync('${path}', 1, 1);
      process.env.VOXGATE_CHANGE_FILE = change + ':${path}';
      try {
        const model = await load();
        const said = silero ? await model.probabilities(speech, { reset: true }) : await model.transcribe(speech, options);
        await model.close();
        return JSON.stringify(said);
      } catch (error) {
        return 'refused: ' + error.code;
      }
    }
    const whole = await outcome('0:none');
    const reads = readFileSync('${count}').readInt32LE();
    console.log(JSON.stringify({ how: 'none', nth: 0, reads, result: whole.startsWith('refused') ? whole : 'whole' }));
    for (const how of ['cut', 'written', 'removed', 'replaced'])
      for (let place = 0; place < ${PLACES}; place++) {
        const nth = 1 + Math.floor(place * (reads - 1) / ${PLACES - 1});
        const result = await outcome(nth + ':' + how);
        console.log(JSON.stringify({ how, nth, reads, result: result === whole ? 'whole' : result.slice(0, 200) }));
      }`;
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script],
    {
      encoding: 'utf8',
      timeout: 120_000,
      // Only the value of a variable that is there may change while other threads look for it.
      env: {
        ...process.env,
        LD_PRELOAD: library,
        VOXGATE_CHANGE_READS: count,
        VOXGATE_CHANGE_FILE: '0:none:/',
      },
    },
  );
  assert.equal(status, 0, `${signal ?? ''} ${stdout.slice(-500)} ${stderr}`);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

for (const [family, id] of Object.entries(FILES))
  test(`a model of ${family} whose file changes while it is loaded is refused or whole`, {
    skip,
  }, async () => {
    await writeWeights(dir);
    const [first, ...others] = loadWhileChanging(family, join(dir, 'weights', `${id}.bin`));
    assert.equal(first?.result, 'whole');
    assert.equal(others.length, 4 * PLACES);
    // The file stays open, so that its content is there without its name.
    const wrong = others.filter(
      ({ how, result }) => result !== (how === 'cut' || how === 'written' ? 'refused: load_failed' : 'whole'),
    );
    assert.deepEqual(wrong, []);
  });
