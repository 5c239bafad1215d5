/** Runs whisper.cpp's own server and command line, in their default build from the sources the gateway compiles. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { readConfig } from '../../src/config/config.ts';
import { parseLanguage } from '../../src/transcription/language/names.ts';
import { ROOT } from '../common/machine.ts';
import { answers, childrenCpuSec, freePort, measured, UNMEASURED } from '../common/processes.ts';
import type { Device, Peer, PeerOptions } from './peer.ts';
import { upload } from './upload.ts';

const SOURCES = join(ROOT, 'node_modules/nodejs-whisper/cpp/whisper.cpp');
/** Its build for GPUs uses them unasked. */
const BUILDS: Record<Device, { folder: string; definitions: string[]; name: string }> = {
  cpu: { folder: join(ROOT, 'build/bench-whisper.cpp'), definitions: [], name: 'default build, q8_0' },
  cuda: {
    folder: join(ROOT, 'build/bench-whisper.cpp-cuda'),
    definitions: ['-DGGML_CUDA=ON'],
    name: 'built with CUDA, f16',
  },
};
/** These are the server's defaults; the command line would search five beams otherwise. */
const GREEDY = ['--beam-size', '1', '--best-of', '2'];

/** The peer runs on the same weights as the gateway. */
export function ggmlBase(device: Device = 'cpu'): string {
  return join(readConfig().config.modelDir, device === 'cuda' ? 'ggml-base.bin' : 'ggml-base-q8_0.bin');
}

export async function startWhisperServer({ threads, device = 'cpu' }: PeerOptions): Promise<Peer> {
  const { folder, name } = build(device);
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const args = ['-m', ggmlBase(device), '--host', '127.0.0.1', '--port', String(port), '-t', String(threads)];
  const child = spawn(join(folder, 'bin/whisper-server'), [...args, ...GREEDY], { stdio: 'ignore' });
  const figures = measured(child);
  await answers(`${base}/`, child);
  return {
    ...figures,
    name: 'whisper.cpp server',
    version: `${sourceVersion()}, ${name}, greedy`,
    async transcribe({ audio, language }) {
      // Only this format tells the language; its times come from the same tokens as the text.
      const fields = { language, response_format: language === 'auto' ? 'verbose_json' : 'json' };
      const { wallMs, firstMs, body } = await upload(`${base}/inference`, audio, fields);
      const heard = JSON.parse(body) as { text: string; detected_language?: string };
      const code = parseLanguage(heard.detected_language ?? '');
      return { wallMs, firstMs, text: plain(heard.text), ...(code === undefined ? {} : { language: code }) };
    },
  };
}

/** Each run has a process that loads the weights again, as it does for a program that calls the command line. */
export async function startWhisperCli({ threads, device = 'cpu' }: PeerOptions): Promise<Peer> {
  const { folder, name } = build(device);
  const cpuBefore = childrenCpuSec();
  let peak = 0;
  return {
    ...UNMEASURED,
    name: 'whisper.cpp cli',
    version: `${sourceVersion()}, ${name}, greedy; a process for every clip`,
    async transcribe({ audio, language }) {
      const args = ['-m', ggmlBase(device), '-t', String(threads), '-l', language, ...GREEDY];
      const begin = performance.now();
      const child = spawn(join(folder, 'bin/whisper-cli'), [...args, '-f', audio], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const exited = once(child, 'exit');
      const { peakMegabytes } = measured(child);
      // The kernel forgets the figure when the process ends.
      const watch = setInterval(() => {
        peak = Math.max(peak, peakMegabytes() || 0);
      }, 20);
      const [out, log, [status]] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
      const wallMs = performance.now() - begin;
      clearInterval(watch);
      if (status !== 0) throw new Error(`whisper-cli ended with ${status}: ${log.slice(-300)}`);
      const withoutLoadMs = printed(log, 'total') - printed(log, 'load');
      return {
        wallMs,
        firstMs: wallMs,
        // Without timestamps it would decode in another way than the others, and lose its place in long recordings.
        text: plain(out.replaceAll(/^\[[^\]]*-->[^\]]*\]/gm, '')),
        ...(Number.isNaN(withoutLoadMs) ? {} : { withoutLoadMs }),
      };
    },
    cpuSec: () => childrenCpuSec() - cpuBefore,
    peakMegabytes: () => peak,
  };
}

function printed(log: string, what: 'load' | 'total'): number {
  return Number(new RegExp(`${what} time = +([\\d.]+) ms`).exec(log)?.[1]);
}

function plain(spoken: string): string {
  return spoken.replaceAll(/\s+/g, ' ').trim();
}

function sourceVersion(): string {
  const lists = readFileSync(join(SOURCES, 'CMakeLists.txt'), 'utf8');
  return /project\("whisper\.cpp" VERSION ([\d.]+)\)/.exec(lists)?.[1] ?? 'unknown version';
}

/** Builds once: cmake does nothing when nothing has changed. */
function build(device: Device) {
  const { folder, definitions } = BUILDS[device];
  const run = (args: string[]) => {
    const { status, error } = spawnSync('cmake', args, { stdio: ['ignore', 'ignore', 'inherit'] });
    if (status !== 0) throw new Error(`cmake ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`);
  };
  if (!existsSync(join(folder, 'CMakeCache.txt'))) {
    process.stderr.write('Building whisper.cpp’s server and cli (some minutes, once)\n');
    const release = ['-DCMAKE_BUILD_TYPE=Release', '-DWHISPER_BUILD_TESTS=OFF', ...definitions];
    run(['-S', SOURCES, '-B', folder, ...release]);
  }
  run(['--build', folder, '--target', 'whisper-server', 'whisper-cli', '--parallel']);
  return BUILDS[device];
}
