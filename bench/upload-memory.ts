/**
 * What a large upload adds to the gateway's memory, and how long /health takes from the start of the process.
 *
 *   node --import tsx bench/upload-memory.ts [--megabytes 300]
 *
 * The upload is a wav of silence, so that every byte is received, decoded and searched for speech, but no model
 * runs. Memory is the peak resident set the kernel counted (VmHWM), read before and after.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { megabytes: { type: 'string', default: '300' } } });
const bytes = Number(values.megabytes) * 1024 * 1024;
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const PORT = 18_000 + Math.floor(Math.random() * 1000);
const base = `http://127.0.0.1:${PORT}`;

const startedAt = performance.now();
const child = spawn(process.execPath, ['dist/main.js', 'serve'], {
  cwd: ROOT,
  env: { ...process.env, SVC_PORT: String(PORT), SVC_MAX_AUDIO_SEC: '36000', SVC_LOG_LEVEL: 'error' },
  stdio: 'inherit',
});
while (
  !(await fetch(`${base}/health`).then(
    (r) => r.ok,
    () => false,
  ))
) {
  await new Promise((resolve) => setTimeout(resolve, 5));
}
process.stdout.write(`start to first /health: ${(performance.now() - startedAt).toFixed(0)} ms\n`);

await transcribe(32_044); // one second: what the first request loads is not the upload's
const before = peakMegabytes();
const took = await transcribe(bytes);
const after = peakMegabytes();
process.stdout.write(
  `${values.megabytes} MB in ${(took / 1000).toFixed(1)} s: peak ${before} MB before, ${after} MB after, ${after - before} MB added\n`,
);
child.kill('SIGTERM');
await once(child, 'exit');

async function transcribe(size: number): Promise<number> {
  const boundary = 'voxgate-bench';
  const head = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`;
  const begin = performance.now();
  const response = await fetch(`${base}/v1/audio/transcriptions`, {
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

/** 16 kHz mono, 16 bits. */
function wavHeader(dataBytes: number): Uint8Array {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + dataBytes, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(16_000, 24);
  header.writeUInt32LE(32_000, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(dataBytes, 40);
  return header;
}

function peakMegabytes(): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}
