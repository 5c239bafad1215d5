/** Logs the progress of a download, at each tenth of the file. */
import { megabytes } from './disk.ts';
import type { ReportProgress } from './source.ts';

export function createProgressLog(log: { info(message: string): void }): ReportProgress {
  let told = 0;
  return ({ phase, what, doneBytes, totalBytes }) => {
    if (phase !== 'downloading' || totalBytes === null) return;
    const tenth = Math.floor((doneBytes / totalBytes) * 10);
    // The end has a line elsewhere. A file that is downloaded from its start again is logged again.
    if (tenth > told && tenth < 10)
      log.info(`Downloading ${what}: ${tenth * 10} % of ${megabytes(totalBytes)}.`);
    told = tenth;
  };
}
