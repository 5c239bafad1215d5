/** A live session of the official OpenAI package of npm, over its client on `ws`. */
import { connect } from 'node:net';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';

/** @param base address of a gateway, without /v1 */
export function openaiRealtime(base: string, apiKey: string): OpenAIRealtimeWS {
  const { port } = new URL(base);
  return new OpenAIRealtimeWS(
    // The package always asks for TLS, which the gateway leaves to a proxy in front of it.
    { model: 'gpt-realtime', options: { createConnection: () => connect(Number(port), '127.0.0.1') } },
    new OpenAI({ baseURL: `${base}/v1`, apiKey }),
  );
}
