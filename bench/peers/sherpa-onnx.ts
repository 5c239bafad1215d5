/** Runs sherpa-onnx for Node on an ONNX export of Whisper base, in a Node process of its own. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { startJsonLines } from './json-lines.ts';
import { ensureNodePackage } from './node-packages.ts';
import { type Peer, type PeerOptions, ROOT, type Run } from './peer.ts';

const NAME = 'sherpa-onnx-node';
const VERSION = '1.13.8';

export async function startSherpaOnnx({ threads, sherpaOnnx }: PeerOptions): Promise<Peer> {
  if (sherpaOnnx === undefined) {
    throw new Error('no weights; --sherpa-onnx DIR names a folder with the ONNX export of Whisper base');
  }
  const weights = findWeights(sherpaOnnx);
  const folder = ensureNodePackage(NAME, VERSION);
  const script = join(ROOT, 'bench/peers/sherpa-onnx-process.mjs');
  const args = [script, folder, JSON.stringify(weights), String(threads)];
  const child = await startJsonLines(NAME, process.execPath, args);
  return {
    name: NAME,
    version: `${VERSION}, ${weights.encoder.includes('int8') ? 'int8' : 'as exported'}, greedy`,
    maxSec: 30, // it drops the audio beyond one window of Whisper
    transcribe: ({ audio, language }) => child.ask<Run>({ audio, language }),
    cpuSec: child.cpuSec,
    peakMegabytes: child.peakMegabytes,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
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
