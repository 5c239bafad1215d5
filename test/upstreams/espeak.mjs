/**
 * Runs espeak-ng as a source of 24 kHz mono 16-bit samples. Text goes in by stdin, so that no text is ever an option.
 */
import { execFileSync, spawn } from 'node:child_process';

export const SAMPLE_RATE = 24_000;
const ESPEAK_RATE = 22_050;
const WORDS_PER_MINUTE = 175;

/** OpenAI's names stand for voices and speakers that differ audibly. */
const NAMED = {
  alloy: 'en-us',
  ash: 'en-gb',
  coral: 'en-us+f2',
  echo: 'en-us+m3',
  fable: 'en-gb-scotland',
  nova: 'en-us+f3',
  onyx: 'en-us+m7',
  sage: 'en-gb+f4',
  shimmer: 'en-us+f5',
};

/** Maps a voice name to the value of `-v`: only these values ever become an argument. @returns {Map<string, string>} */
export function builtInVoices() {
  const table = execFileSync('espeak-ng', ['--voices'], { encoding: 'utf8' });
  const languages = table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/)[1])
    .filter((language) => language !== undefined);
  return new Map([...Object.entries(NAMED), ...languages.map((language) => [language, language])]);
}

/**
 * Gives samples as they are made. Both processes are killed when the consumer stops early or the signal aborts.
 * @param {{ text: string, voice: string, speed: number, signal: AbortSignal }} job
 * @returns {AsyncGenerator<Buffer>}
 */
export async function* speak({ text, voice, speed, signal }) {
  const rate = String(Math.round(WORDS_PER_MINUTE * speed));
  const espeak = spawn('espeak-ng', ['--stdin', '--stdout', '-b', '1', '-v', voice, '-s', rate], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  // The header of `--stdout` has made-up sizes; as raw samples its 44 bytes are 1 ms of near silence, which is cut
  // below.
  const input = ['-f', 's16le', '-ar', String(ESPEAK_RATE), '-ac', '1', '-i', 'pipe:0'];
  const output = ['-f', 's16le', '-ar', String(SAMPLE_RATE), '-ac', '1', '-flush_packets', '1', 'pipe:1'];
  const cut = ['-af', 'atrim=start_sample=22'];
  const ffmpeg = spawn('ffmpeg', ['-hide_banner', '-loglevel', 'error', ...input, ...cut, ...output], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const children = [espeak, ffmpeg];
  const kill = () => {
    for (const child of children) child.kill('SIGKILL');
  };
  const ended = Promise.all(children.map(exit));
  // The status is awaited only after the last sample; a failure before that must not count as unhandled.
  ended.catch(kill);
  signal.addEventListener('abort', kill);
  // Either process may be gone before it has read everything; its exit status counts.
  for (const stdin of [espeak.stdin, ffmpeg.stdin]) stdin.on('error', () => undefined);
  espeak.stdout.pipe(ffmpeg.stdin);
  espeak.stdin.end(text);
  try {
    signal.throwIfAborted();
    yield* ffmpeg.stdout;
    await ended;
  } finally {
    signal.removeEventListener('abort', kill);
    kill();
  }
}

/** @param {import('node:child_process').ChildProcess} child */
function exit(child) {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, by) => {
      if (code === 0) resolve(undefined);
      else reject(new Error(`${child.spawnfile} ended with ${by ?? code}`));
    });
  });
}

/** Makes the header of a wav of `bytes` bytes of samples, or of one without an end when that number is not known. */
export function wavHeader(bytes = 0xffffffff - 36) {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + bytes, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(SAMPLE_RATE, 24);
  header.writeUInt32LE(SAMPLE_RATE * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(bytes, 40);
  return header;
}
