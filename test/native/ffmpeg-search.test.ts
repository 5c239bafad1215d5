/** To look for ffmpeg takes longer than to decode most files, so it is looked for when a file needs it. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createAudioOpener } from '../../src/audio/opener.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { folder, makeTone, requireFfmpeg, write } from '../audio-fixtures.ts';

test('ffmpeg is looked for when a file needs it, and only then', async () => {
  const { path } = await requireFfmpeg();
  const seen = join(folder, 'looked-for');
  const script = write('ffmpeg', `#!/bin/bash\n: > ${seen}; exec ${path} "$@"\n`);
  chmodSync(script, 0o755);
  const audio = createAudioOpener({ engine: loadNative(), searchPath: dirname(script), maxAudioSec: 60 });
  const { signal } = new AbortController();
  await (await audio.open(makeTone('plain.wav'), signal)).close();
  assert.equal(existsSync(seen), false);
  await (await audio.open(makeTone('search.m4a', '-c:a', 'aac'), signal)).close();
  assert.equal(existsSync(seen), true);
});
