/**
 * Cuts what a window takes for one speaker into pieces, and hears whether they have one voice. The segmentation tells
 * three speakers apart in ten seconds. Where a fourth speaks, or two sound alike, it takes two persons for one, and a
 * voice of two persons would make two speakers of the audio one. Pure.
 */
import { groupsBelow } from './agglomerative.ts';
import { type LabeledWindow, UNKNOWN, type WindowSpeakers } from './assignment.ts';
import { durationOf } from './segmentation.ts';
import { centroidOf, cosine, joined, type LocalVoice, type Piece } from './voice.ts';

/** A pause of more frames (0.1 s) ends a piece. */
const PAUSE_FRAMES = 6;
/** A longer piece is cut into equal ones, because speakers may follow each other without a pause. */
const LONGEST_SEC = 3;
/** Shorter pieces say too little of a voice. */
const LEAST_SEC = 0.5;
/** Two persons are told apart by longer pieces. Shorter ones only get the label of whom they are most like. */
const LEAST_APART_SEC = 0.8;
/** Pieces of one local speaker that are less alike are of two persons. */
const ONE_VOICE = 0.45;
/** A piece that is so much more like another speaker of the audio than like its own is that one's. */
const CLOSER_BY = 0.1;
/** The sets of local speakers are bits of a byte. */
const MOST_LOCAL = 8;

/** @param frames in which a speaker speaks alone, in order. @returns those of each piece */
export function piecesOf(frames: readonly number[]): number[][] {
  const runs: number[][] = [];
  for (const frame of frames) {
    const run = runs.at(-1);
    if (run !== undefined && frame - (run.at(-1) ?? 0) <= PAUSE_FRAMES + 1) run.push(frame);
    else runs.push([frame]);
  }
  return runs.flatMap(inParts).filter((piece) => durationOf(piece.length) >= LEAST_SEC);
}

function inParts(run: number[]): number[][] {
  const [first = 0, last = 0] = [run[0], run.at(-1)];
  const length = last + 1 - first;
  const parts = Math.ceil(durationOf(length) / LONGEST_SEC);
  const edge = (part: number) => first + Math.round((length * part) / parts);
  return Array.from({ length: parts }, (_, part) =>
    run.filter((frame) => frame >= edge(part) && frame < edge(part + 1)),
  );
}

/** The same window, in which a local speaker whose pieces have several voices is several local speakers. */
export function separated(window: WindowSpeakers): WindowSpeakers {
  const active = window.active.slice();
  const voices = [...window.voices];
  window.voices.forEach((voice, local) => {
    const groups = voice === null ? [] : byVoice(voice.pieces);
    if (voice === null || groups.length < 2 || voices.length + groups.length - 1 > MOST_LOCAL) return;
    const locals = groups.map((pieces, i) => {
      const at = i === 0 ? local : voices.length;
      voices[at] = voiceOf(pieces, voice);
      return at;
    });
    const belongs = groups.flatMap((pieces, i) =>
      pieces.map((piece) => ({ piece, local: locals[i] ?? local })),
    );
    for (const [frame, set] of window.active.entries()) {
      if ((set & (1 << local)) === 0) continue;
      const away = ({ piece: { from, to } }: (typeof belongs)[number]) =>
        Math.max(from - frame, frame - to + 1, 0);
      const nearest = belongs.reduce((best, one) => (away(one) < away(best) ? one : best));
      active[frame] = ((active[frame] ?? 0) & ~(1 << local)) | (1 << nearest.local);
    }
  });
  return { ...window, active, voices };
}

const isLongEnough = ({ weight }: Piece) => weight >= LEAST_APART_SEC;

/** The pieces of each voice. One that is too short to tell voices apart goes with the nearest. */
function byVoice(pieces: readonly Piece[]): Piece[][] {
  const long = pieces.filter(isLongEnough);
  const points = long.map(({ direction, weight }, i) => centroidOf({ direction, weight }, i));
  const of = groupsBelow(points, ONE_VOICE);
  const groups = new Map<number, Piece[]>();
  for (const piece of pieces) {
    const away = ({ from, to }: Piece) => Math.max(from - piece.to, piece.from - to); // negative: itself
    const nearest = long.reduce((best, one) => (away(one) < away(best) ? one : best), long[0] ?? piece);
    const group = of[long.indexOf(nearest)] ?? 0;
    groups.set(group, [...(groups.get(group) ?? []), piece]);
  }
  return [...groups.values()];
}

/** @param whole the voice of all of the pieces, and of what is too short to be one */
function voiceOf(pieces: readonly Piece[], whole: LocalVoice): LocalVoice {
  const { direction, weight: aloneSec } = pieces
    .filter(isLongEnough)
    .map((piece) => centroidOf(piece, 0))
    .reduce(joined);
  return { direction, aloneSec, weight: (whole.weight * aloneSec) / whole.aloneSec, pieces };
}

/**
 * The window with labels. Pieces that are clearly more like another speaker of the audio than like that of their label
 * get a label of their own.
 * @param labels the label of each local speaker
 * @param speakers the directions of the speakers of the audio
 */
export function labeledByPiece(
  window: WindowSpeakers,
  labels: readonly number[],
  speakers: readonly Float32Array[],
): LabeledWindow {
  const active = window.active.slice();
  const all = [...labels];
  window.voices.forEach((voice, local) => {
    const own = speakers[all[local] ?? UNKNOWN];
    if (voice === null || own === undefined) return;
    for (const { direction, from, to } of voice.pieces) {
      const alike = speakers.map((speaker) => cosine(speaker, direction));
      const label = alike.indexOf(Math.max(...alike));
      if ((alike[label] ?? 0) - cosine(own, direction) <= CLOSER_BY) continue;
      const at = all.includes(label) ? all.indexOf(label) : all.length;
      if (at >= MOST_LOCAL) continue;
      all[at] = label;
      // Where another speaks at once, two labels say so already.
      for (let frame = from; frame < to; frame += 1)
        if (active[frame] === 1 << local) active[frame] = 1 << at;
    }
  });
  const { firstFrame, expected } = window;
  return { firstFrame, active, expected, labels: all };
}
