/** Runs bindings for Node in a Node process of their own. They are installed in a folder of the benches. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageVersion, ROOT } from '../common/machine.ts';
import { startJsonLines } from './json-lines.ts';
import type { Peer, PeerOptions, Run } from './peer.ts';
import { ggmlBase } from './whisper-cpp.ts';

const FOLDER = join(ROOT, 'build/bench-node');

/** `@fugood/whisper.node`, a binding of whisper.cpp. */
export function startWhisperNode({ threads }: PeerOptions): Promise<Peer> {
  const [name, version] = ['@fugood/whisper.node', '1.1.3'];
  return start(name, version, 'its prebuilt library, q8_0', 'whisper-node-process.mjs', [
    ggmlBase(),
    threads,
  ]);
}

/** sherpa-onnx on an ONNX export of Whisper base. */
export async function startSherpaOnnx({ threads, sherpaOnnx }: PeerOptions): Promise<Peer> {
  if (sherpaOnnx === undefined)
    throw new Error('no weights; --sherpa-onnx DIR names a folder with the ONNX export of Whisper base');
  const weights = findWeights(sherpaOnnx);
  const precision = weights.encoder.includes('int8') ? 'int8' : 'as exported';
  const args = [JSON.stringify(weights), threads];
  const peer = await start('sherpa-onnx-node', '1.13.8', precision, 'sherpa-onnx-process.mjs', args);
  return { ...peer, maxSec: 30 }; // it drops the audio beyond one window of Whisper
}

async function start(
  name: string,
  version: string,
  weights: string,
  script: string,
  args: (string | number)[],
): Promise<Peer> {
  const folder = ensurePackage(name, version);
  const child = await startJsonLines(name, process.execPath, [`peers/${script}`, folder, ...args]);
  return {
    ...child,
    name,
    version: `${version}, ${weights}, greedy`,
    transcribe: ({ audio, language }) => child.ask<Run>({ audio, language }),
  };
}

function findWeights(folder: string): { encoder: string; decoder: string; tokens: string } {
  const names = readdirSync(folder).toSorted();
  const find = (pattern: RegExp) => {
    const found = names.filter((name) => pattern.test(name));
    const best = found.find((name) => name.includes('int8')) ?? found[0];
    if (best === undefined) throw new Error(`no file like ${pattern.source} in ${folder}`);
    return join(folder, best);
  };
  return {
    encoder: find(/encoder.*\.onnx$/),
    decoder: find(/decoder.*\.onnx$/),
    tokens: find(/tokens\.txt$/),
  };
}

/** Installs this very version unless it is there. Returns the package's folder. */
function ensurePackage(name: string, version: string): string {
  const folder = join(FOLDER, 'node_modules', name);
  if (existsSync(join(folder, 'package.json')) && packageVersion(folder) === version) return folder;
  process.stderr.write(`Installing ${name}@${version} in ${FOLDER}\n`);
  mkdirSync(FOLDER, { recursive: true });
  // Without a manifest of its own npm would take the one above, which is ours.
  const manifest = join(FOLDER, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n');
  const args = ['install', '--prefix', FOLDER, '--no-audit', '--no-fund', '--save-exact', '--ignore-scripts'];
  const stdio = ['ignore', 'ignore', 'inherit'] as const;
  execFileSync('npm', [...args, `${name}@${version}`], { cwd: FOLDER, stdio: [...stdio] });
  return folder;
}
