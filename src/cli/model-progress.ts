/** Shows the progress of one model: a bar on a terminal, and elsewhere a line for each step and every few seconds. */
import { SingleBar } from 'cli-progress';
import { megabytes } from '../models/disk.ts';
import type { ModelProgress } from '../models/source.ts';

export interface ProgressView {
  update(progress: ModelProgress): void;
  close(): void;
}

const LINE_EVERY_MS = 5000;

export function createProgressView(
  stream: NodeJS.WriteStream = process.stderr,
  now: () => number = () => performance.now(),
): ProgressView {
  return stream.isTTY ? createBar(stream) : createLines(stream, now);
}

function createBar(stream: NodeJS.WriteStream): ProgressView {
  const bar = new SingleBar({
    stream,
    format: '{phase} {what} [{bar}] {percentage} % {size}',
    hideCursor: true,
    clearOnComplete: true,
  });
  let step = '';
  return {
    update(progress) {
      const total = progress.totalBytes ?? 0;
      const fields = { phase: progress.phase, what: progress.what, size: sizes(progress) };
      const next = `${progress.phase} ${progress.what}`;
      if (next !== step) {
        bar.stop();
        bar.start(Math.max(1, total), 0, fields);
        step = next;
      }
      bar.setTotal(Math.max(1, total));
      bar.update(progress.doneBytes, fields);
    },
    close: () => bar.stop(),
  };
}

function createLines(stream: NodeJS.WritableStream, now: () => number): ProgressView {
  let step = '';
  let last = 0;
  return {
    update(progress) {
      const next = `${progress.phase} ${progress.what}`;
      if (next === step && now() - last < LINE_EVERY_MS) return;
      step = next;
      last = now();
      stream.write(`${next} ${sizes(progress)}`.trimEnd().concat('\n'));
    },
    close() {},
  };
}

function sizes({ doneBytes, totalBytes }: ModelProgress): string {
  if (totalBytes === null) return doneBytes > 0 ? megabytes(doneBytes) : '';
  return `${megabytes(doneBytes)} of ${megabytes(totalBytes)}`;
}
