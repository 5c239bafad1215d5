/**
 * Measures the memory of the gateway over many mixed requests, loads and unloads, and long files, through HTTP.
 *
 *   npm run bench -- memory [--requests 1500 --rounds 5 --long 60]
 *
 * The requests hold 2 to 60 s of speech, in seven forms, with the language given or detected. Four clients send at
 * once, so that most requests are refused first, and retry. `--long` is the length in minutes of a file that is
 * answered with times, after one of a minute. Each row has what the process holds when it is at rest, and the peak
 * since the row before.
 */
import { writeFileSync } from 'node:fs';
import { wavHeader } from '../../test/wav.ts';
import { publicClips } from '../clips/clips.ts';
import { KEEPS_MODELS, startGatewayProcess } from '../common/gateway.ts';
import { numberOptions } from '../common/options.ts';
import { markdownTable } from '../common/page.ts';
import { megabytes, sleep } from '../common/processes.ts';
import { seededRandom } from '../common/random.ts';
import { BYTES_A_SECOND, HEADER_BYTES, RATE, wavSamples } from '../common/samples.ts';
import { send, transcriptionsAt } from '../peers/upload.ts';

const { requests, rounds, long } = numberOptions({ requests: 1500, rounds: 5, long: 60 });

const MODEL = 'multilingual-base';
const CLIENTS = 4;
const LONGEST_SEC = 60;
const SHORTEST_SEC = 2;
const FORMS: readonly Record<string, string>[] = [
  {},
  { language: 'en' },
  { language: 'en', response_format: 'verbose_json', 'timestamp_granularities[]': 'word' },
  { response_format: 'srt' },
  { language: 'en', response_format: 'vtt' },
  { language: 'en', stream: 'true' },
  { response_format: 'verbose_json' },
];

const random = seededRandom(1);
const pause = Buffer.alloc(0.7 * BYTES_A_SECOND);
const tape = Buffer.concat(publicClips().flatMap(({ audio }) => [wavSamples(audio), pause]));
await using gateway = await startGatewayProcess(KEEPS_MODELS);
const rows: string[][] = [];

await note('started, no model');
await transcribe(speech(5), { language: 'en' });
await note('loaded, one request answered');
await mixed(requests);
await note(`${requests} mixed requests`);
await unload();
await note('unloaded');
for (let round = 0; round < rounds; round++) {
  await mixed(4);
  await unload();
}
await note(`${rounds} more loads and unloads`);
if (long > 0) {
  const timed = { language: 'en', response_format: 'verbose_json', 'timestamp_granularities[]': 'word' };
  await transcribe(speech(60), timed);
  await note('loaded, 1 min with the times of its words');
  await transcribe(speech(long * 60), timed);
  await note(`${long} min with the times of its words`);
  await unload();
  await note('unloaded');
}

const columns = ['After', 'resident', 'of it in no file', 'peak since the row before'];
process.stdout.write(`${markdownTable(columns, rows)}\n`);

/** Sends requests from several clients at once; each is refused while the slot is held, and tries again. */
async function mixed(count: number): Promise<void> {
  let left = count;
  const client = async () => {
    while (left-- > 0) {
      const sec = SHORTEST_SEC * (LONGEST_SEC / SHORTEST_SEC) ** random();
      await transcribe(speech(sec), FORMS[Math.floor(random() * FORMS.length)] ?? {});
      const sent = count - left;
      if (sent % 100 === 0) process.stderr.write(`${sent}: ${held().join(', ')}\n`);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

/** A part of the tape that begins anywhere, over and over if it is longer than the tape. */
function speech(sec: number): Buffer {
  const bytes = Math.floor(sec * RATE) * 2;
  const from = Math.floor(random() * (tape.length / 2)) * 2;
  const parts = [tape.subarray(from)];
  for (let have = tape.length - from; have < bytes; have += tape.length) parts.push(tape);
  return Buffer.concat([wavHeader(bytes), ...parts]).subarray(0, HEADER_BYTES + bytes);
}

async function transcribe(wav: Buffer, fields: Record<string, string>): Promise<void> {
  for (;;) {
    const { status, body } = await send(transcriptionsAt(gateway.base), wav, { model: MODEL, ...fields });
    if (status === 200) return;
    if (status !== 503) throw new Error(body);
    await sleep(50 + 100 * random());
  }
}

async function unload(): Promise<void> {
  const response = await fetch(`${gateway.base}/admin/api/reset-asr-state`, { method: 'POST' });
  if (!response.ok) throw new Error(await response.text());
}

/** Notes what the process holds when it has been at rest for a while, and begins a new peak. */
async function note(what: string): Promise<void> {
  await sleep(3000);
  rows.push([what, ...held()]);
  process.stderr.write(`${rows.at(-1)?.join(', ')}\n`);
  writeFileSync(`/proc/${gateway.pid}/clear_refs`, '5'); // https://man7.org/linux/man-pages/man5/proc_pid_clear_refs.5.html
}

function held(): string[] {
  const fields = ['VmRSS', 'Anonymous', 'VmHWM'] as const;
  return fields.map((field) => `${megabytes(gateway.pid, field).toFixed(0)} MB`);
}
