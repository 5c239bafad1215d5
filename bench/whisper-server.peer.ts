/** whisper.cpp's own server, its default build from the very sources the gateway compiles, on the same weights. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openAsBlob } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../src/config.ts';
import type { Clip, Run } from './compare-faster-whisper.peer.ts';
import { answers, freePort } from './gateway.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = join(ROOT, 'node_modules/nodejs-whisper/cpp/whisper.cpp');
const BUILD = join(ROOT, 'build/bench-whisper.cpp');

export interface WhisperServer extends AsyncDisposable {
  transcribe(clip: Clip): Promise<Run>;
}

export async function startWhisperServer(threads: number): Promise<WhisperServer> {
  build();
  const port = await freePort();
  const model = join(readConfig().config.modelDir, 'ggml-base-q8_0.bin');
  const child = spawn(
    join(BUILD, 'bin/whisper-server'),
    ['-m', model, '--host', '127.0.0.1', '--port', String(port), '-t', String(threads)],
    { stdio: 'ignore' },
  );
  await answers(`http://127.0.0.1:${port}/`);
  return {
    async transcribe({ audio, language }) {
      const form = new FormData();
      form.append('file', await openAsBlob(audio), 'audio');
      form.append('language', language);
      form.append('response_format', 'json');
      const begin = performance.now();
      const response = await fetch(`http://127.0.0.1:${port}/inference`, { method: 'POST', body: form });
      const { text } = (await response.json()) as { text: string };
      const wallMs = performance.now() - begin;
      return { wallMs, firstMs: wallMs, text: text.replaceAll(/\s+/g, ' ').trim(), words: [] };
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

/** Once: cmake does nothing when nothing changed. */
function build(): void {
  const run = (args: string[]) => {
    const { status } = spawnSync('cmake', args, { stdio: ['ignore', 'ignore', 'inherit'] });
    if (status !== 0) throw new Error(`cmake ${args.join(' ')} failed`);
  };
  if (!existsSync(join(BUILD, 'CMakeCache.txt'))) {
    process.stderr.write('Building whisper.cpp’s server (some minutes, once)\n');
    run(['-S', SOURCES, '-B', BUILD, '-DCMAKE_BUILD_TYPE=Release', '-DWHISPER_BUILD_TESTS=OFF']);
  }
  run(['--build', BUILD, '--target', 'whisper-server', '--parallel']);
}
