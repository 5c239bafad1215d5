/**
 * One transcription runs while a crowd asks for all three capabilities: how fast are they refused, and what does it
 * cost the one that is served?
 *
 *   npm run bench -- load-shedding [--rate 1000 --seconds 30]
 *
 * The same audio is transcribed alone, then under load. The load may cost the processor time that it takes itself,
 * spread over the cores: the gateway's own for the refusals, and the load generator's beside it. Any cost beyond that
 * is interference.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import autocannon from 'autocannon';
import { wavHeader } from '../../test/wav.ts';
import { samplesOf, startGatewayProcess } from '../common/gateway.ts';
import { ROOT } from '../peers/peer.ts';

const { values } = parseArgs({
  options: { rate: { type: 'string', default: '1000' }, seconds: { type: 'string', default: '30' } },
});
const seconds = Number(values.seconds);
const rate = Number(values.rate);
const SAMPLE = join(ROOT, 'node_modules/nodejs-whisper/cpp/whisper.cpp/samples/jfk.mp3');

const SAMPLES = samplesOf(SAMPLE);

await using gateway = await startGatewayProcess();
await transcribe(2); // this loads the model
const perClip = (await transcribe(6)).wallSec / 6;
/** The transcription is long enough to run through all of the load. */
const repeats = Math.ceil((seconds * 1.6) / perClip);

const alone = await transcribe(repeats);
const busy = transcribe(repeats);
await new Promise((resolve) => setTimeout(resolve, 1000));
const before = process.cpuUsage();
const crowd = await autocannon({
  url: gateway.base,
  connections: 50,
  overallRate: rate,
  duration: seconds,
  requests: [
    { method: 'POST', path: '/v1/audio/speech', body: '{"input":"hello"}' },
    { method: 'POST', path: '/v1/chat/completions', body: '{"messages":[]}' },
    {
      method: 'POST',
      path: '/v1/audio/transcriptions',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body: '--x--\r\n',
    },
  ],
});
const generator = process.cpuUsage(before);
const generatorSec = (generator.user + generator.system) / 1e6;
const loaded = await busy;

const cores = availableParallelism();
const refusalsSec = loaded.cpuSec - alone.cpuSec;
const dueSec = (refusalsSec + generatorSec) / cores;
const slowdown = loaded.wallSec / alone.wallSec - 1;
const beyond = (loaded.wallSec - alone.wallSec - dueSec) / alone.wallSec;
const refused = crowd.statusCodeStats?.['503']?.count ?? 0;
process.stdout.write(
  [
    `${crowd.requests.total} requests in ${crowd.duration} s, ${refused} refused with 503, ${crowd.errors} errors, ${crowd.timeouts} timeouts`,
    `latency of a refusal: p50 ${crowd.latency.p50} ms, p97.5 ${crowd.latency.p97_5} ms, p99 ${crowd.latency.p99} ms, longest ${crowd.latency.max} ms`,
    `the transcription: ${alone.wallSec.toFixed(2)} s alone, ${loaded.wallSec.toFixed(2)} s under load: ${(slowdown * 100).toFixed(1)} % slower`,
    `processor time on ${cores} cores: ${refusalsSec.toFixed(1)} s more in the gateway, ${generatorSec.toFixed(1)} s of the load generator`,
    `slower beyond that: ${(beyond * 100).toFixed(1)} %`,
    '',
  ].join('\n'),
);
if (alone.text !== loaded.text) throw new Error('The text under load is another one');

interface Timed {
  wallSec: number;
  cpuSec: number;
  text: string;
}

async function transcribe(repeats: number): Promise<Timed> {
  const audio = Buffer.concat([wavHeader(SAMPLES.length * repeats), ...Array(repeats).fill(SAMPLES)]);
  const form = new FormData();
  form.set('model', 'multilingual-base');
  form.set('language', 'en');
  form.set('file', new Blob([Uint8Array.from(audio)]), 'audio.wav');
  const cpu = gateway.cpuSec();
  const startedAt = performance.now();
  const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body: form });
  const { text, error } = (await response.json()) as { text: string; error?: { message: string } };
  if (error !== undefined) throw new Error(error.message);
  return { wallSec: (performance.now() - startedAt) / 1000, cpuSec: gateway.cpuSec() - cpu, text };
}
