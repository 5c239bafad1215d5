/** Shows on a terminal how much of a file has its text. */
import { basename } from 'node:path';
import { SingleBar } from 'cli-progress';

export type AudioBar = ReturnType<typeof createAudioBar>;

export function createAudioBar(path: string, stream: NodeJS.WriteStream) {
  const name = basename(path).replaceAll(/[{}]|\p{Cc}/gu, ' ');
  let bar: SingleBar | null = null;
  let isOver = false;
  let heard = 0;
  const start = (format: string, sec: number) => {
    bar = new SingleBar({ stream, format: `${name} ${format}`, hideCursor: true, clearOnComplete: true });
    bar.start(sec > 0 ? sec : Number.MAX_SAFE_INTEGER, heard, { length: clock(sec), heard: clock(heard) });
  };
  return {
    /** @param duration of the file in seconds; null where its head does not tell it, and then only a line says how far it is */
    async begin(duration: Promise<number | null> | undefined): Promise<void> {
      const sec = (await duration) ?? 0;
      if (isOver) return;
      start(sec > 0 ? '[{bar}] {percentage} % of {length}' : '{heard} so far', sec);
    },
    /** Counts the seconds of the wait. Used where the gateway does not report progress. */
    wait(): void {
      start('waiting for the gateway, {duration_formatted}', 0);
    },
    /** @param sec the end of the last segment */
    update(sec: number): void {
      heard = sec;
      bar?.update(Math.min(sec, bar.getTotal()), { heard: clock(sec) });
    },
    /** Removes the bar. */
    close(): void {
      isOver = true;
      bar?.stop();
    },
  };
}

function clock(sec: number): string {
  const pad = (value: number) => String(value).padStart(2, '0');
  const whole = Math.round(sec);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}
