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
import autocannon from 'autocannon';
import { JFK, wavHeader } from '../../test/wav.ts';
import { startGatewayProcess } from '../common/gateway.ts';
import { numberOptions } from '../common/options.ts';
import { sleep } from '../common/processes.ts';
import { samplesOf } from '../common/samples.ts';
import { transcribe } from '../peers/upload.ts';

const { rate, seconds } = numberOptions({ rate: 1000, seconds: 30 });
const SAMPLES = samplesOf(JFK);

await using gateway = await startGatewayProcess();
await timed(2); // this loads the model
const perClip = (await timed(6)).wallSec / 6;
/** The transcription is long enough to run through all of the load. */
const repeats = Math.ceil((seconds * 1.6) / perClip);

const alone = await timed(repeats);
const busy = timed(repeats);
await sleep(1000);
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

async function timed(times: number): Promise<Timed> {
  const audio = Buffer.concat([wavHeader(SAMPLES.length * times), ...Array(times).fill(SAMPLES)]);
  const before = gateway.cpuSec();
  const { wallMs, body } = await transcribe(gateway.base, audio, {
    model: 'multilingual-base',
    language: 'en',
  });
  return { wallSec: wallMs / 1000, cpuSec: gateway.cpuSec() - before, text: JSON.parse(body).text };
}
