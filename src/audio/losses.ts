/**
 * Finds what was lost to damage in what ffmpeg prints as it decodes: times, gaps and messages about damage. A gap alone
 * is no loss, because recorders leave out silence. Pure.
 */
import { LENGTH_SLACK_SEC, type Loss } from './decoder.ts';

/** Losses closer to each other than this are one. Beyond the most, the last one is extended. */
const APART_SEC = 1;
const MOST = 256;
/** A demuxer reads ahead of the decoder, so a message may come this long before the gap. */
const AHEAD_SEC = 3;
/** Messages that a cut last packet causes too, as in every recording that was stopped, or that repeat another one. */
const CUT =
  /corrupt|prematurely|exhausted|partial file|incomplete frame|^Error (?:while decoding|submitting packet)/;

/** @param isDamaged true if the file is known to be damaged, so that every gap is a loss */
export function createLossNotes(isDamaged: boolean) {
  const found: Loss[] = [];
  let lastSec: number | null = null;
  let gapSec = 0;
  /** The time of the first message about damage since the last sound; null if there was none. */
  let toldSec: number | null = null;
  let lastToldSec = Number.NEGATIVE_INFINITY;
  let isMoreThanCut = false;
  /** The end of the last loss if a cut would explain it, and the losses before it. */
  let cut: { before: readonly Loss[]; endSec: number } | null = null;

  function add(startSec: number, endSec: number): void {
    const before = found.at(-1);
    if (before !== undefined && (startSec - before.endSec < APART_SEC || found.length >= MOST))
      found.splice(-1, 1, { startSec: Math.min(before.startSec, startSec), endSec });
    else found.push({ startSec, endSec });
  }

  return {
    found: found as readonly Loss[],
    /** There is sound at this time. */
    heard(sec: number): void {
      const isLoss = isDamaged || sec - gapSec - lastToldSec < AHEAD_SEC;
      if (toldSec !== null || gapSec > 0)
        cut = gapSec > 0 || isMoreThanCut ? null : { before: [...found], endSec: sec };
      if (gapSec > 0 && isLoss) add(sec - gapSec, sec);
      else if (toldSec !== null) add(toldSec, sec);
      [lastSec, gapSec, toldSec, isMoreThanCut] = [sec, 0, null, false];
    },
    /** The next time comes after a gap of this length. */
    gap(lengthSec: number): void {
      gapSec = lengthSec;
    },
    damage(words: string): void {
      if (lastSec === null) return; // ffmpeg reads the beginning twice
      toldSec ??= lastSec;
      lastToldSec = lastSec;
      isMoreThanCut ||= !CUT.test(words);
    },
    /**
     * @param namedSec the length in the header; null if it has none
     * @param isAlone false if the length may be that of another stream, such as a video
     */
    end(heardSec: number, namedSec: number | null, isAlone: boolean): void {
      // The last packet is read before those ahead of it are decoded.
      if (cut !== null && heardSec - cut.endSec < LENGTH_SLACK_SEC)
        found.splice(0, found.length, ...cut.before);
      // The last packet may have a wrong time.
      while ((found.at(-1)?.startSec ?? 0) > heardSec) found.pop();
      const last = found.pop();
      if (last !== undefined) found.push({ ...last, endSec: Math.min(last.endSec, heardSec) });
      const isShort = namedSec !== null && namedSec - heardSec > LENGTH_SLACK_SEC;
      if (isShort && (isAlone || toldSec !== null)) add(heardSec, namedSec);
      else if (toldSec !== null && isMoreThanCut) add(Math.min(toldSec, heardSec), heardSec);
    },
  };
}
