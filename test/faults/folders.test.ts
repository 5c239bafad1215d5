/**
 * Every folder of the gateway is full, read-only, gone, or another user's, for a while. Transcription goes on wherever
 * it can, says clearly where it cannot, and is whole again when the folder is.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createModelStore } from '../../src/models/store.ts';
import type { Weights } from '../../src/models/weights.ts';
import {
  form,
  type Gateway,
  json,
  post,
  type Script,
  startGateway,
  toneWav,
  until,
} from '../http/harness.ts';

const MIB = 1024 * 1024;
const NOBODY = 65534;
const FOLDERS = ['uploads', 'logs', 'captures', 'models'] as const;
type Folder = (typeof FOLDERS)[number];
const MODEL_FILE = 'ggml-base-q8_0.bin';
const BYTES = Buffer.alloc(1000, 'w');

const noMounts = (() => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-mount-'));
  const { status } = spawnSync('mount', ['-t', 'tmpfs', 'none', dir], { stdio: 'ignore' });
  if (status === 0) execFileSync('umount', [dir]);
  rmSync(dir, { recursive: true });
  return status === 0 ? false : 'this user may mount no file systems';
})();

/** Weights of a few bytes under the ids of real models. */
function weights(id: string, file: string): Weights {
  const pin = { repo: 'none', revision: 'none', bytes: BYTES.length };
  const sha256 = createHash('sha256').update(BYTES).digest('hex');
  return {
    id,
    family: 'whisper',
    provider: 'voxgate',
    files: { q8_0: { ...pin, file, sha256 } },
    derived: [],
  };
}

interface Scene {
  gateway: Gateway;
  path(folder: Folder): string;
}

/** A gateway whose four folders are disks of their own. */
async function withDisks(
  t: TestContext,
  body: (scene: Scene) => Promise<void>,
  script: Script = {},
  kib = 1024,
) {
  const root = mkdtempSync(join(tmpdir(), 'voxgate-folders-'));
  chownSync(root, NOBODY, NOBODY);
  const path = (folder: Folder) => join(root, folder);
  for (const folder of FOLDERS) {
    mkdirSync(path(folder));
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'none', path(folder)]);
    chownSync(path(folder), NOBODY, NOBODY);
  }
  t.after(() => {
    process.seteuid?.(0);
    for (const folder of FOLDERS) spawnSync('umount', ['-l', path(folder)], { stdio: 'ignore' });
    rmSync(root, { recursive: true, force: true });
  });
  for (const file of [MODEL_FILE, 'vad.bin']) writeFileSync(join(path('models'), file), BYTES);
  process.seteuid?.(NOBODY); // nothing is forbidden to root
  const store = createModelStore({
    ...{ dir: path('models'), download: false, precision: 'q8_0', sources: [], quantize: null },
    log: { info: () => undefined, warn: () => undefined },
    catalogue: [weights('multilingual-base', MODEL_FILE), weights('voice-activity', 'vad.bin')],
  });
  await using gateway = await startGateway({
    ...script,
    store,
    env: {
      ...{
        SVC_TMP_DIR: path('uploads'),
        SVC_OBS_LOG_DIR: path('logs'),
        SVC_OBS_PAYLOAD_DIR: path('captures'),
      },
      ...{ SVC_OBS_PAYLOAD_ENABLED: '1', SVC_MODEL_KEEP_ALIVE_SEC: '0' },
      ...script.env,
    },
    budgets: { upload: { leastFreeBytes: 0 }, ...script.budgets },
  });
  await body({ gateway, path });
}

function asRoot<T>(work: () => T): T {
  process.seteuid?.(0);
  try {
    return work();
  } finally {
    process.seteuid?.(NOBODY);
  }
}

/** Each begins as root, and returns what ends it. */
const TROUBLES: Record<string, (path: string) => () => void> = {
  full(path) {
    const file = join(path, 'filler');
    spawnSync('dd', ['if=/dev/zero', `of=${file}`, 'bs=1k'], { stdio: 'ignore' });
    return () => rmSync(file);
  },
  'read-only'(path) {
    execFileSync('mount', ['-o', 'remount,ro', path]);
    return () => execFileSync('mount', ['-o', 'remount,rw', path]);
  },
  gone(path) {
    const saved = new Map(readdirSync(path).map((name) => [name, join(path, name)] as const));
    const files = [...saved].flatMap(([name, at]) =>
      name.endsWith('.bin') ? [[at, readFileSync(at)] as const] : [],
    );
    execFileSync('umount', ['-l', path]);
    rmSync(path, { recursive: true });
    return () => {
      mkdirSync(path, { recursive: true });
      chownSync(path, NOBODY, NOBODY);
      for (const [at, bytes] of files) writeFileSync(at, bytes);
    };
  },
  'another user’s'(path) {
    chownSync(path, 0, 0);
    chmodSync(path, 0o700);
    return () => {
      chownSync(path, NOBODY, NOBODY);
      chmodSync(path, 0o755);
    };
  },
};

/** The codes of refusals; what is not here is served. */
const REFUSED: Record<string, string> = {
  'uploads full': 'storage_unavailable',
  'uploads read-only': 'storage_unavailable',
  'uploads another user’s': 'storage_unavailable',
  'models gone': 'model_not_installed',
  'models another user’s': 'model_not_installed',
};

const speech = toneWav(1);

async function outcome(gateway: Gateway): Promise<string> {
  const response = await post(gateway, form(speech, { model: 'multilingual-base' }));
  const { error } = await json(response);
  if (response.status === 200) return 'served';
  assert.equal(response.status, 503, JSON.stringify(error));
  assert.doesNotMatch(
    JSON.stringify(error),
    /voxgate-folders|EACCES|ENOENT|EROFS|ENOSPC/,
    'paths are for the log only',
  );
  return error.code;
}

for (const folder of FOLDERS) {
  for (const [trouble, begin] of Object.entries(TROUBLES)) {
    test(`the folder of the ${folder} is ${trouble} for a while`, { skip: noMounts }, async (t) => {
      await withDisks(t, async ({ gateway, path }) => {
        assert.equal(await outcome(gateway), 'served');
        let end: () => void = () => undefined;
        await until('nothing is being written there', () => {
          try {
            end = asRoot(() => begin(path(folder)));
            return true;
          } catch {
            return false; // the disk of a file that is open cannot be made read-only
          }
        });
        try {
          for (let i = 0; i < 3; i++)
            assert.equal(await outcome(gateway), REFUSED[`${folder} ${trouble}`] ?? 'served');
          assert.equal((await fetch(`${gateway.base}/health`)).status, 200);
          assert.equal((await fetch(`${gateway.base}/v1/models`)).status, 200);
        } finally {
          asRoot(end);
        }
        assert.equal(await outcome(gateway), 'served');
        if (folder === 'logs') {
          const written = () => readdirSync(path('logs')).some((name) => name.startsWith('access-'));
          await until('the log is written again', written);
        }
        if (existsSync(path('uploads')))
          await until('no upload is left', () =>
            readdirSync(path('uploads'), { recursive: true, withFileTypes: true }).every(
              (entry) => !entry.isFile(),
            ),
          );
      });
    });
  }
}

test('an upload that would fill its disk is stopped while some of it is free', {
  skip: noMounts,
}, async (t) => {
  const script: Script = { budgets: { upload: { leastFreeBytes: 6 * MIB } } };
  const body = async ({ gateway, path }: Scene) => {
    const data = form(Buffer.alloc(14 * MIB, 1), {});
    const { headers, body } = new Request('http://x', { method: 'POST', body: data });
    // A stream announces no length, so nothing is known before it arrives.
    const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
    const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, init);
    const { error } = await json(response);
    assert.deepEqual([response.status, error.code], [503, 'storage_unavailable'], error.message);
    assert(gateway.logged.some((line) => line.includes('must stay free')));
    await until(
      'no file is left',
      () => readdirSync(path('uploads')).flatMap((d) => readdirSync(join(path('uploads'), d))).length === 0,
    );
    assert.equal(await outcome(gateway), 'served');
  };
  await withDisks(t, body, script, 16 * 1024);
});

for (const [what, change] of [
  ['removed', (path: string) => rmSync(path)],
  ['cut', (path: string) => truncateSync(path, 500)],
  ['replaced', (path: string) => writeFileSync(path, Buffer.alloc(BYTES.length, 'x'))],
] as const) {
  test(`a model whose file is ${what} serves for as long as it is loaded, and is then refused`, {
    skip: noMounts,
  }, async (t) => {
    const body = async ({ gateway, path }: Scene) => {
      assert.equal(await outcome(gateway), 'served');
      asRoot(() => {
        for (const file of [MODEL_FILE, 'vad.bin']) change(join(path('models'), file));
      });
      for (let i = 0; i < 3; i++) assert.equal(await outcome(gateway), 'served');
      await fetch(`${gateway.base}/admin/api/reset-asr-state`, { method: 'POST' });
      assert.equal(await outcome(gateway), 'model_not_installed');
      asRoot(() => {
        for (const file of [MODEL_FILE, 'vad.bin']) writeFileSync(join(path('models'), file), BYTES);
      });
      assert.equal(await outcome(gateway), 'served');
    };
    await withDisks(t, body, { env: { SVC_MODEL_KEEP_ALIVE_SEC: '300' } });
  });
}
