/** Opens the audio of a session and takes the slot for it. */
import type { Channel } from '../audio/decoder.ts';
import type { AudioSource } from '../audio/open.ts';
import type { Hold, Slot } from '../engine/slot.ts';

export interface OpeningInput {
  /**
   * Opens the audio from its beginning, before the slot is taken. It is called again after a download of weights, and
   * after a wait for the slot. Of audio that is heard by channel, each is opened twice, to be compared and to be heard,
   * one after the other, so one decoder runs at a time.
   */
  openAudio(signal: AbortSignal, channel?: Channel): Promise<AudioSource>;
  requestId: string;
  signal: AbortSignal;
}

/** Taking it may wait where the caller of the session asked for that. */
export interface SessionSlot extends Pick<Slot, 'isFree'> {
  take(...request: Parameters<Slot['take']>): Hold | Promise<Hold>;
}

/**
 * The audio is opened first, so that its faults are told before the slot is taken. Where the slot has to be waited for,
 * the audio is closed meanwhile: a decoder may be a process, of which there are few.
 */
export async function openWithSlot(
  { openAudio, requestId, signal }: OpeningInput,
  channel: Channel | undefined,
  slot: SessionSlot,
): Promise<{ audio: AudioSource; hold: Hold }> {
  const audio = await openAudio(signal, channel);
  const isTaken = !slot.isFree();
  let hold: Hold | null = null;
  try {
    if (isTaken) await audio.close();
    hold = await slot.take('asr', requestId);
    if (!isTaken) return { audio, hold };
    return { audio: await openAudio(AbortSignal.any([signal, hold.signal]), channel), hold };
  } catch (error) {
    hold?.[Symbol.dispose]();
    await audio.close();
    throw error;
  }
}
