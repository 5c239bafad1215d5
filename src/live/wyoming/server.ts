/**
 * A server for Wyoming, the protocol in which Home Assistant asks for transcriptions. It has no keys and no encryption,
 * so it is for a network that is trusted.
 */
import { createServer, type Server } from 'node:net';
import { boundConnections } from '../../limits/connections.ts';
import type { RoutableModel } from '../../transcription/routing.ts';
import { type Connection, type ConnectionDeps, runConnection } from './connection.ts';

export interface WyomingDeps extends ConnectionDeps {
  sparedMs: number;
}

export interface Wyoming {
  /** It does not listen yet. */
  server: Server;
  /** Accepts nothing more, lets audio that has ended become text, and closes all connections. */
  stop(): Promise<void>;
}

export function createWyoming({ sparedMs, ...deps }: WyomingDeps): Wyoming {
  const open = new Set<Connection>();
  const server = createServer();
  const begin = boundConnections(server, { maxConnections: deps.limits.connections, sparedMs });
  server.on('connection', (socket) => {
    if (socket.destroyed) return; // there were too many
    const connection = runConnection({ ...deps, socket, onWork: (work) => begin({ socket }, work) });
    open.add(connection);
    void connection.closed.then(() => open.delete(connection));
  });
  return {
    server,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.all([...open].map((connection) => connection.stop()));
      await closed;
    },
  };
}

/** The answer to `describe`: what this gateway can transcribe with, in the words of Wyoming. */
const HUB = 'https://huggingface.co';

type Model = Pick<RoutableModel, 'id' | 'languages' | 'installed' | 'files'>;

/** @param models those that can serve requests; Home Assistant offers the languages of the installed ones */
export function infoOf(models: readonly Model[], version: string) {
  const program = {
    name: 'voxgate',
    description: 'Speech to text inside of one gateway',
    attribution: { name: 'voxgate', url: '' },
    installed: models.some((model) => model.installed),
    version,
    models: models.map(({ id, languages, installed, files }) => {
      const repo = (files.f16 ?? files.q8_0)?.repo ?? '';
      const attribution = { name: repo, url: `${HUB}/${repo}` };
      return { name: id, description: id, attribution, installed, version: null, languages };
    }),
    supports_transcript_streaming: true,
    requires_external_vad: true, // the client says where its audio ends
  };
  return { asr: [program], tts: [], handle: [], intent: [], wake: [], mic: [], snd: [] };
}
