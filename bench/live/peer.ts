/** What `npm run bench -- live` asks of every program that it compares, and how it asks the gateway. */
import type { Delay } from '../../src/transcription/live/stable-text.ts';
import {
  append,
  at16kHz,
  COMPLETED,
  connectLive,
  DELTA,
  FAILED,
  type LiveClient,
  type Received,
} from '../../test/http/realtime.ts';
import { until } from '../../test/until.ts';
import type { GatewayProcess } from '../common/gateway.ts';
import { feed, type LiveClip } from './clips.ts';

export interface LiveRun {
  text: string;
  /** For each utterance of the clip the time from its end to its text, ms. */
  finalMs: number[];
  /** From the beginning of the first word to the first words of the text, ms; null where no text came. */
  firstMs: number | null;
  /** True where the words that came before the end are not those of the text. */
  contradicted: boolean;
  /** The utterances that failed: the code, and the time from the end to the failure, ms. */
  failures: { code: string; ms: number }[];
}

export interface LivePeer {
  name: string;
  hear(clip: LiveClip, packetMs: number): Promise<LiveRun>;
}

/** The longest time from the last packet to the last text. */
const LIMIT_MS = 60_000;

/** A session of its own for each clip, so every clip is the first one of a session. */
export function liveGateway(gateway: Pick<GatewayProcess, 'base'>, model: string, delay: Delay): LivePeer {
  return {
    name: `voxgate, \`delay\` ${delay}`,
    async hear(clip, packetMs) {
      await using client = await connectLive(gateway);
      client.send(at16kHz({ transcription: { model, language: 'en', delay } }));
      return await say(client, clip, { packetMs });
    },
  };
}

/**
 * Says one clip in a session, and waits for the texts of all that was said in it.
 * @param before the audio that the session was sent before, ms
 */
export async function say(
  client: LiveClient,
  clip: LiveClip,
  { packetMs, before = 0 }: { packetMs: number; before?: number },
): Promise<LiveRun> {
  const events: Timed[] = [];
  const listen = (data: unknown) => {
    events.push({ at: performance.now(), ...JSON.parse(String(data)) });
  };
  client.socket.on('message', listen);
  const of = (type: string) => events.filter((event) => event.type === type);
  const beganAt = performance.now();
  const sentAt = await feed({
    samples: clip.samples,
    packetMs,
    send: (packet) => client.send(append(Float32Array.from(packet, (sample) => sample / 32_767))),
  });
  // Messages are handled in order, so the answer to this one comes when all the audio was searched for speech.
  client.send({ type: 'input_audio_buffer.clear' });
  const isOver = () =>
    of('input_audio_buffer.cleared').length > 0 &&
    of(COMPLETED).length + of(FAILED).length >= of('input_audio_buffer.committed').length;
  await until(`the texts of ${clip.name}`, () => client.closed() !== null || isOver(), LIMIT_MS);
  client.socket.off('message', listen);
  if (client.closed() !== null)
    throw new Error(`${clip.name}: the session was closed with ${client.closed()}`);
  const texts = of(COMPLETED);
  const [first] = of(DELTA);
  const sinceItsEnd = ({ at, item_id }: Timed): number => {
    const stopped = of(STOPPED).find((event) => event.item_id === item_id);
    return at - sentAt(stopped?.audio_end_ms - before);
  };
  return {
    text: texts.map(({ transcript }) => transcript).join(' '),
    finalMs: texts.map(sinceItsEnd),
    firstMs: first === undefined ? null : first.at - beganAt - clip.firstWordMs,
    contradicted: texts.some(({ item_id, transcript }) => {
      const deltas = of(DELTA).filter((event) => event.item_id === item_id);
      return !plain(transcript).startsWith(plain(deltas.map(({ delta }) => delta).join('')));
    }),
    failures: of(FAILED).map((event) => ({ code: event.error.code, ms: sinceItsEnd(event) })),
  };
}

type Timed = Received & { at: number };

const STOPPED = 'input_audio_buffer.speech_stopped';

const plain = (text: string) =>
  text
    .toLowerCase()
    .replace(/[\s\p{P}]+/gu, ' ')
    .trim();
