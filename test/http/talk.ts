/** A gateway with a chat daemon and a speech server that tests drive, for conversations. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type LocalServer, listening } from '../local-server.ts';
import { wav } from '../wav.ts';
import { type Gateway, heard, type Script, startGateway } from './harness.ts';
import { connectLive, type LiveClient, silence, tone } from './realtime.ts';

export type Answer = (res: ServerResponse, body: any) => void | Promise<void>;

export interface Upstream extends LocalServer {
  /** The bodies of its requests. */
  asked: any[];
  /** How it answers from now on. */
  answer(next: Answer): void;
  /** The requests that were closed before they were answered whole. */
  broken(): number;
}

async function bodyOf(req: IncomingMessage): Promise<any> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString() || '{}');
}

async function startUpstream(first: Answer, listed: object): Promise<Upstream> {
  let answer = first;
  let broken = 0;
  const asked: any[] = [];
  const server = createServer(async (req, res) => {
    if (req.method === 'GET') return void res.end(JSON.stringify(listed));
    const body = await bodyOf(req);
    asked.push(body);
    res.on('close', () => {
      if (!res.writableFinished) broken += 1;
    });
    await answer(res, body);
  });
  return {
    ...(await listening(server)),
    asked,
    broken: () => broken,
    answer(next) {
      answer = next;
    },
  };
}

export const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
export const USAGE = `data: ${JSON.stringify({
  choices: [],
  usage: { prompt_tokens: 20, completion_tokens: 7, prompt_tokens_details: { cached_tokens: 3 } },
})}\n\n`;
export const DONE = 'data: [DONE]\n\n';

/** An answer that comes as these pieces of text. */
export const says =
  (...texts: string[]): Answer =>
  (res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write(chunk({ role: 'assistant', content: '' }));
    for (const content of texts) res.write(chunk({ content }));
    res.write(chunk({}, 'stop'));
    res.end(USAGE + DONE);
  };

/** Samples of speech: 50 ms for each character. */
const spoken = (text: string, rate = 22_050) =>
  wav(
    Int16Array.from({ length: Math.round(rate * 0.05 * text.length) }, (_, i) =>
      Math.round(9000 * Math.sin(i / 7)),
    ),
    rate,
  );

const speaks: Answer = (res, { input }) => {
  res.writeHead(200, { 'Content-Type': 'audio/wav' });
  res.end(spoken(input));
};

export interface Talk extends AsyncDisposable {
  gateway: Gateway;
  chat: Upstream;
  speech: Upstream;
}

export async function startTalk(script: Script = {}): Promise<Talk> {
  const chat = await startUpstream(says('Hello', ' there. How are', ' you?'), { data: [{ id: 'llama' }] });
  const speech = await startUpstream(speaks, {});
  const env = { SVC_LLM_BACKEND_URL: chat.base, SVC_TTS_UPSTREAM_URL: speech.base, ...script.env };
  const closeUpstreams = async () => {
    for (const upstream of [chat, speech]) await upstream[Symbol.asyncDispose]();
  };
  const gateway = await startGateway({ ...script, env }).catch(async (error: unknown) => {
    await closeUpstreams(); // which would keep the process of the test alive
    throw error;
  });
  return {
    gateway,
    chat,
    speech,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await closeUpstreams();
    },
  };
}

export const AUDIO = 'response.output_audio.delta';
export const TEXT = { output_modalities: ['text'] };

/** A client that converses, in 16 kHz unless `session` says otherwise. */
export async function talkTo(
  { gateway }: Talk,
  session: object = {},
  query = '?model=gpt-realtime',
): Promise<LiveClient> {
  const client = await connectLive(gateway, { query });
  const input = { format: { type: 'audio/pcm', rate: 16_000 }, transcription: { model: 'whisper-1' } };
  const { audio = {}, ...others } = session as any;
  client.send({
    type: 'session.update',
    session: { type: 'realtime', audio: { ...audio, input: { ...input, ...audio.input } }, ...others },
  });
  await client.event('session.updated');
  return client;
}

export const say = (client: LiveClient, seconds = 1) => {
  client.speak(tone(seconds));
  client.speak(silence(1));
};
export const write = (client: LiveClient, text: string) =>
  client.send({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
  });
export const types = (client: LiveClient) =>
  client.events.map(({ type }) => type).filter((type, at, all) => type !== all[at - 1]);
export const spokenBytes = (client: LiveClient) =>
  client.events.reduce(
    (sum, { type, delta }) => sum + (type === AUDIO ? Buffer.from(delta, 'base64').length : 0),
    0,
  );
export const isFree = ({ gateway }: Talk) => gateway.app.slot.status().holder === null;
export const script = (texts: string[]): Script => ({
  transcribe: async () => heard(texts.shift() ?? ' Hello there.'),
});
