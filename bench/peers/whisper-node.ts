/** Runs `@fugood/whisper.node`, a binding of whisper.cpp, in a Node process of its own. It is installed in build/. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageVersion, ROOT } from '../common/machine.ts';
import { startJsonLines } from './json-lines.ts';
import type { Peer, PeerOptions, Run } from './peer.ts';
import { ggmlBase } from './whisper-cpp.ts';

const NAME = '@fugood/whisper.node';
const VERSION = '1.1.3';
const FOLDER = join(ROOT, 'build/bench-node');

export async function startWhisperNode({ threads }: PeerOptions): Promise<Peer> {
  const script = 'peers/whisper-node-process.mjs';
  const child = await startJsonLines(NAME, process.execPath, [script, ensurePackage(), ggmlBase(), threads]);
  return {
    ...child,
    name: NAME,
    version: `${VERSION}, its prebuilt library, q8_0, greedy`,
    transcribe: ({ audio, language }) => child.ask<Run>({ audio, language }),
  };
}

/** Installs this very version unless it is there. Returns the package's folder. */
function ensurePackage(): string {
  const folder = join(FOLDER, 'node_modules', NAME);
  if (existsSync(join(folder, 'package.json')) && packageVersion(folder) === VERSION) return folder;
  process.stderr.write(`Installing ${NAME}@${VERSION} in ${FOLDER}\n`);
  mkdirSync(FOLDER, { recursive: true });
  // Without a manifest of its own npm would take the one above, which is ours.
  const manifest = join(FOLDER, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n');
  const args = ['install', '--prefix', FOLDER, '--no-audit', '--no-fund', '--save-exact', '--ignore-scripts'];
  const stdio = ['ignore', 'ignore', 'inherit'] as const;
  execFileSync('npm', [...args, `${NAME}@${VERSION}`], { cwd: FOLDER, stdio: [...stdio] });
  return folder;
}
