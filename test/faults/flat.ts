/** Sends many requests to one gateway and compares what the process holds before and after. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { loadNative } from '../../src/engine/addon.ts';
import { form, type Gateway, post, startGateway, toneWav, until } from '../http/harness.ts';
import { loadFake, temporaryFile } from '../native/fixtures.ts';

export interface Held {
  heapBytes: number;
  /** Of buffers and typed arrays, which are outside of the heap. */
  bufferBytes: number;
  residentBytes: number;
  descriptors: number;
  threads: number;
}

const WARM_UP = 300;
const AT_ONCE = 4;
const FIELDS: readonly Record<string, string>[] = [
  {},
  { stream: 'true' },
  { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' },
  { response_format: 'nonsense' },
];
const speech = toneWav(0.3);

/** Requests come four at a time, so most are refused; a tenth of the clients leave. */
export async function holdAfter(requests: number): Promise<{ before: Held; after: Held }> {
  await using gateway = await startGateway({
    loadModel: () => loadFake('language en 0.9', 'segment 0 200 Hello.'),
    env: { SVC_LOG_LEVEL: 'error', SVC_OBS_METRICS_WINDOW_SEC: '1', SVC_OBS_PAYLOAD_ENABLED: '0' },
  });
  await startDecoders();
  return await heldAround(gateway, {
    warmUp: () => send(gateway, WARM_UP),
    work: () => send(gateway, requests),
  });
}

/** What the process holds before and after some work, of which the warm-up does a little. */
export async function heldAround(
  gateway: Pick<Gateway, 'running' | 'uploads'>,
  { warmUp, work }: { warmUp(): Promise<void>; work(): Promise<void> },
): Promise<{ before: Held; after: Held }> {
  // Node parses a source map, 8 MB of heap for this one, when a stack with such a place is first written.
  process.setSourceMapsEnabled(false);
  try {
    await warmUp();
    const before = await held(gateway);
    await work();
    return { before, after: await held(gateway) };
  } finally {
    process.setSourceMapsEnabled(true);
  }
}

/** The addon starts its few decoder threads when they are needed at once. This needs all of them, before the count. */
async function startDecoders(): Promise<void> {
  const path = temporaryFile(toneWav(60));
  const files = await Promise.all(Array.from({ length: 16 }, () => loadNative().openAudio(path, 'wav')));
  await Promise.all(files.map((file) => file.read(60 * 16_000)));
  for (const file of files) file.close();
}

async function send(gateway: Gateway, count: number): Promise<void> {
  let next = 0;
  const client = async () => {
    for (let i = next++; i < count; i = next++) {
      const leave = new AbortController();
      if (i % 10 === 0) setTimeout(() => leave.abort(), i % 7);
      const fields = { language: 'en', model: 'multilingual-base', ...FIELDS[i % FIELDS.length] };
      const answer = post(gateway, form(speech, fields), { signal: leave.signal });
      const status = await answer.then(
        (response) => response.text().then(() => response.status),
        () => 499,
      );
      assert([200, 400, 499, 503].includes(status), String(status));
      gateway.exchanges.length = 0;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
}

/** What the process holds when the gateway is at rest and the garbage is collected. */
async function held(gateway: Pick<Gateway, 'running' | 'uploads'>): Promise<Held> {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  await until('the gateway is at rest', () => gateway.running() === 0 && gateway.uploads().length === 0);
  // The window of the metrics is a second, and a collection lets the addon free what its objects held.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  for (let i = 0; i < 3; i++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage();
  return {
    heapBytes: heapUsed,
    bufferBytes: arrayBuffers,
    residentBytes: rss,
    descriptors: readdirSync('/proc/self/fd').length,
    threads: readdirSync('/proc/self/task').length,
  };
}

/** Fails where the process holds more than before, beyond what the allocators keep for later. */
export function assertFlat({ before, after }: { before: Held; after: Held }): void {
  const grown = (what: keyof Held) => after[what] - before[what];
  const said = JSON.stringify({ before, after });
  // Code that is compiled later, and what Node's own client keeps, is a part of the heap too.
  assert(grown('heapBytes') < 8e6, `heap: ${said}`);
  assert(grown('residentBytes') < 64e6, `resident memory: ${said}`);
  // Clients of this process keep some connections open.
  assert(grown('descriptors') <= 2 * AT_ONCE, `descriptors: ${said}`);
  assert(grown('threads') <= 0, `threads: ${said}`);
}
