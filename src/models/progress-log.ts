/** Tells the log how far a download is, each time another tenth of the file is here. */
import { megabytes } from './disk.ts';
import type { ReportProgress } from './source.ts';

export function createProgressLog(log: { info(message: string): void }): ReportProgress {
  let told = 0;
  return ({ phase, what, doneBytes, totalBytes }) => {
    if (phase !== 'downloading' || totalBytes === null) return;
    const tenth = Math.floor((doneBytes / totalBytes) * 10);
    // The end has a line of its own. A file that is fetched from its start again is told again.
    if (tenth > told && tenth < 10)
      log.info(`Downloading ${what}: ${tenth * 10} % of ${megabytes(totalBytes)}.`);
    told = tenth;
  };
}
