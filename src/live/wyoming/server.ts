/**
 * A server for Wyoming, the protocol in which Home Assistant asks for transcriptions and speech. It has no keys and no
 * encryption, so it is for a network that is trusted.
 */
import { EventEmitter } from 'node:events';
import { createServer } from 'node:net';
import { boundConnections } from '../../limits/connections.ts';
import type { RoutableModel } from '../../transcription/routing.ts';
import { type ConnectionDeps, WyomingConnection } from './connection.ts';

export interface WyomingDeps extends ConnectionDeps {
  sparedMs: number;
}

export function createWyoming({ sparedMs, ...deps }: WyomingDeps) {
  const open = new Set<WyomingConnection>();
  const server = createServer();
  const begin = boundConnections(server, { maxConnections: deps.limits.connections, sparedMs });
  server.on('connection', (socket) => {
    if (socket.destroyed) return; // `boundConnections` has refused it
    const connection = new WyomingConnection({
      ...deps,
      socket,
      beginWork() {
        const work = new EventEmitter();
        begin({ socket }, work);
        return () => void work.emit('close');
      },
    });
    open.add(connection);
    void connection.closed.then(() => open.delete(connection));
  });
  return {
    /** It does not listen yet. */
    server,
    /** Accepts nothing more, lets audio that has ended become text, and closes all connections. */
    async stop(): Promise<void> {
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.all([...open].map((connection) => connection.stop()));
      await closed;
    },
  };
}

const HUB = 'https://huggingface.co';

type Model = Pick<RoutableModel, 'id' | 'languages' | 'installed' | 'files'>;

export interface Offer {
  /** Those that can serve requests; Home Assistant offers the languages of the installed ones. */
  models: readonly Model[];
  /** The names of the voices of the speech upstream; null while it cannot serve. */
  voices: readonly string[] | null;
  /** The languages that each voice is offered for, because no speech server says which ones it speaks. */
  voiceLanguages: readonly string[];
  version: string;
}

/** The answer to `describe`: what this gateway can transcribe and speak with, in the words of Wyoming. */
export function infoOf({ models, voices, voiceLanguages, version }: Offer) {
  const program = { name: 'voxgate', attribution: { name: 'voxgate', url: '' }, version };
  const asr = {
    ...program,
    description: 'Speech to text inside of one gateway',
    installed: models.some((model) => model.installed),
    models: models.map(({ id, languages, installed, files }) => {
      const repo = (files.f16 ?? files.q8_0)?.repo ?? '';
      const attribution = { name: repo, url: `${HUB}/${repo}` };
      return { name: id, description: id, attribution, installed, version: null, languages };
    }),
    supports_transcript_streaming: true,
    requires_external_vad: true, // the client says where its audio ends
  };
  const tts = {
    ...program,
    description: 'Text to speech by the speech server behind the gateway',
    installed: true,
    voices: voices?.map((name) => ({
      name,
      description: name,
      attribution: program.attribution,
      installed: true,
      version: null,
      languages: voiceLanguages,
    })),
    supports_synthesize_streaming: true,
  };
  return {
    asr: [asr],
    tts: voices === null ? [] : [tts],
    handle: [],
    intent: [],
    wake: [],
    mic: [],
    snd: [],
  };
}
