/**
 * What of the audio was lost to damage, from what ffmpeg prints as it decodes: times of the sound, gaps in it, and words
 * about damage. A gap alone is none, because recorders leave out what is silent. Pure.
 */
import { LENGTH_SLACK_SEC, type Loss } from './decoder.ts';

/** Losses that are closer to each other than this are one, as are those after the most. */
const APART_SEC = 1;
const MOST = 256;
/** A demuxer reads a little ahead of what is heard. */
const AHEAD_SEC = 3;
/** Words about a last packet that is cut, as in every recording that was stopped; or about what was said before. */
const CUT =
  /corrupt|prematurely|exhausted|partial file|incomplete frame|^Error (?:while decoding|submitting packet)/;

export interface LossNotes {
  readonly found: readonly Loss[];
  /** The sound goes on at this time. */
  heard(sec: number): void;
  /** There is no sound for so long, before the next time. */
  gap(lengthSec: number): void;
  damage(words: string): void;
  /**
   * @param namedSec the length that the header names; null where it does not
   * @param isAlone false where something else, such as a picture, may be longer than the sound
   */
  end(heardSec: number, namedSec: number | null, isAlone: boolean): void;
}

/** @param isDamaged true where every gap is damage, because the file is known to be damaged */
export function createLossNotes(isDamaged: boolean): LossNotes {
  const found: Loss[] = [];
  let lastSec: number | null = null;
  let gapSec = 0;
  /** When the first damage was told since the last sound; null where none was. */
  let toldSec: number | null = null;
  let lastToldSec = Number.NEGATIVE_INFINITY;
  let isMoreThanCut = false;
  /** The last loss, where it is told of in words about a cut alone; and how much was found before it. */
  let cut: { before: readonly Loss[]; endSec: number } | null = null;

  function add(startSec: number, endSec: number): void {
    const before = found.at(-1);
    if (before !== undefined && (startSec - before.endSec < APART_SEC || found.length >= MOST))
      found.splice(-1, 1, { startSec: Math.min(before.startSec, startSec), endSec });
    else found.push({ startSec, endSec });
  }

  return {
    found,
    heard(sec) {
      const isLoss = isDamaged || sec - gapSec - lastToldSec < AHEAD_SEC;
      if (toldSec !== null || gapSec > 0)
        cut = gapSec > 0 || isMoreThanCut ? null : { before: [...found], endSec: sec };
      if (gapSec > 0 && isLoss) add(sec - gapSec, sec);
      else if (toldSec !== null) add(toldSec, sec);
      [lastSec, gapSec, toldSec, isMoreThanCut] = [sec, 0, null, false];
    },
    gap(lengthSec) {
      gapSec = lengthSec;
    },
    damage(words) {
      if (lastSec === null) return; // ffmpeg looks at the beginning twice
      toldSec ??= lastSec;
      lastToldSec = lastSec;
      isMoreThanCut ||= !CUT.test(words);
    },
    end(heardSec, namedSec, isAlone) {
      // The last packet is read before what stands ahead of it is heard.
      if (cut !== null && heardSec - cut.endSec < LENGTH_SLACK_SEC)
        found.splice(0, found.length, ...cut.before);
      // What comes last may have a wrong time.
      while ((found.at(-1)?.startSec ?? 0) > heardSec) found.pop();
      const last = found.pop();
      if (last !== undefined) found.push({ ...last, endSec: Math.min(last.endSec, heardSec) });
      const isShort = namedSec !== null && namedSec - heardSec > LENGTH_SLACK_SEC;
      if (isShort && (isAlone || toldSec !== null)) add(heardSec, namedSec);
      else if (toldSec !== null && isMoreThanCut) add(Math.min(toldSec, heardSec), heardSec);
    },
  };
}
