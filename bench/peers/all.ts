/** Lists the peers by the names that `--peers` takes, in the order of the tables. */
import {
  startFasterWhisper,
  startFasterWhisperBatched,
  startFasterWhisperBatchedBeam5,
  startFasterWhisperBeam5,
} from './faster-whisper.ts';
import type { StartPeer } from './peer.ts';
import { startSherpaOnnx } from './sherpa-onnx.ts';
import { startVoxgate, startVoxgateBeam1 } from './voxgate.ts';
import { startWhisperCli, startWhisperServer } from './whisper-cpp.ts';
import { startWhisperNode } from './whisper-node.ts';

export const PEERS: Record<string, StartPeer> = {
  voxgate: startVoxgate,
  'voxgate-beam-1': startVoxgateBeam1,
  'faster-whisper': startFasterWhisper,
  'faster-whisper-beam-5': startFasterWhisperBeam5,
  'faster-whisper-batched': startFasterWhisperBatched,
  'faster-whisper-batched-beam-5': startFasterWhisperBatchedBeam5,
  'whisper-server': startWhisperServer,
  'whisper-cli': startWhisperCli,
  'whisper-node': startWhisperNode,
  'sherpa-onnx': startSherpaOnnx,
};

/** The others are installed without what a GPU needs. */
export function canUseGpu(peer: string): boolean {
  return /^(voxgate|faster-whisper|whisper-(server|cli)$)/.test(peer);
}
