/** Runs `@fugood/whisper.node`, a Node binding of whisper.cpp, in a Node process of its own. */
import { join } from 'node:path';
import { startJsonLines } from './json-lines.ts';
import { ensureNodePackage } from './node-packages.ts';
import { type Peer, type PeerOptions, ROOT, type Run } from './peer.ts';
import { ggmlBase } from './whisper-cpp.ts';

const NAME = '@fugood/whisper.node';
const VERSION = '1.1.3';

export async function startWhisperNode({ threads }: PeerOptions): Promise<Peer> {
  const folder = ensureNodePackage(NAME, VERSION);
  const script = join(ROOT, 'bench/peers/whisper-node-process.mjs');
  const child = await startJsonLines(NAME, process.execPath, [script, folder, ggmlBase(), String(threads)]);
  return {
    name: NAME,
    version: `${VERSION}, its prebuilt library, q8_0, greedy`,
    transcribe: ({ audio, language }) => child.ask<Run>({ audio, language }),
    cpuSec: child.cpuSec,
    peakMegabytes: child.peakMegabytes,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
