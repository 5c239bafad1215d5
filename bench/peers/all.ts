/** Lists the peers by the names that `--peers` takes, in the order of the tables. */
import { startFasterWhisper } from './faster-whisper.ts';
import type { StartPeer } from './peer.ts';
import { startVoxgate, startVoxgateBeam1 } from './voxgate.ts';
import { startWhisperCli, startWhisperServer } from './whisper-cpp.ts';
import { startWhisperNode } from './whisper-node.ts';

export const PEERS: Record<string, StartPeer> = {
  voxgate: startVoxgate,
  'voxgate-beam-1': startVoxgateBeam1,
  'faster-whisper': (options) => startFasterWhisper(options),
  'faster-whisper-beam-5': (options) => startFasterWhisper(options, { beam: 5 }),
  'faster-whisper-batched': (options) => startFasterWhisper(options, { batched: true }),
  'faster-whisper-batched-beam-5': (options) => startFasterWhisper(options, { beam: 5, batched: true }),
  'whisper-server': startWhisperServer,
  'whisper-cli': startWhisperCli,
  'whisper-node': startWhisperNode,
};

/** The others are installed without what a GPU needs. */
export function canUseGpu(peer: string): boolean {
  return /^(voxgate|faster-whisper|whisper-(server|cli)$)/.test(peer);
}
