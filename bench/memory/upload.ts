/**
 * Measures how much a large upload adds to the gateway's memory, and how long /health takes from the start of the
 * process.
 *
 *   npm run bench -- upload
 *
 * The upload is a wav of silence, so every byte is received, decoded and searched for speech, but no model runs.
 * Memory is the peak resident set that the kernel counted (VmHWM), read before and after.
 */
import { wavHeader } from '../../test/wav.ts';
import { startGatewayProcess } from '../common/gateway.ts';

const MEGABYTES = 300;
await using gateway = await startGatewayProcess({ SVC_MAX_AUDIO_SEC: '36000' });
process.stdout.write(`start to first /health: ${gateway.startedInMs.toFixed(0)} ms\n`);

// One second of audio makes the gateway load everything that the first request needs, which is not the upload's.
await transcribe(32_044);
const before = gateway.peakMegabytes();
const took = await transcribe(MEGABYTES * 1024 * 1024);
const after = gateway.peakMegabytes();
process.stdout.write(
  `${MEGABYTES} MB in ${(took / 1000).toFixed(1)} s: peak ${before} MB before, ${after} MB after, ${after - before} MB added\n`,
);

async function transcribe(size: number): Promise<number> {
  const boundary = 'voxgate-bench';
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`;
  const begin = performance.now();
  const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    body: ReadableStream.from(parts(head, size, `\r\n--${boundary}--\r\n`)),
    duplex: 'half',
  } as RequestInit);
  const answer = await response.text();
  if (!response.ok) throw new Error(answer);
  return performance.now() - begin;
}

async function* parts(head: string, size: number, tail: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(head);
  yield wavHeader(size - 44);
  const zeros = new Uint8Array(1024 * 1024);
  for (let left = size - 44; left > 0; left -= zeros.length)
    yield zeros.subarray(0, Math.min(left, zeros.length));
  yield Buffer.from(tail);
}
