/** Brings the voices of a conversation to where they are heard: a telephone line, or the far end of a room. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { wav } from '../../../test/wav.ts';
import { echoing, roomResponse, throughTelephone } from '../../clips/degraded-clips.ts';
import { between, type Random } from '../../common/random.ts';
import { rms, scaled } from '../../common/samples.ts';

/** Seconds until an echo has fallen by 60 dB, from an office to a hall. */
const ECHO_SEC = [0.3, 0.7] as const;
/** Decibels of the echo over the voice itself: each speaker sits elsewhere. */
const ECHO_DB = [-3, 5] as const;
/** The same where all sit far from the microphone. */
const FAR_ECHO_DB = [2, 8] as const;

/**
 * Mixes the tracks of the speakers, which are of one length.
 * @param random uniform values from 0 to 1, seeded
 */
export function inPlace(
  tracks: readonly Float32Array[],
  { telephone, distant, room }: { telephone: boolean; distant: boolean; room: boolean },
  random: Random,
): Float32Array {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-conversation-'));
  const stored = (name: string, samples: Float32Array) => {
    const file = join(folder, name);
    writeFileSync(file, wav(samples));
    return file;
  };
  try {
    const seconds = between(random, ...ECHO_SEC);
    const [least, most] = room ? FAR_ECHO_DB : ECHO_DB;
    const heard = distant
      ? tracks.map((track) => {
          const response = {
            seconds,
            decibels: between(random, least, most),
            seed: Math.floor(random() * 2 ** 32),
          };
          const echo = echoing(stored('track.wav', track), stored('room.wav', roomResponse(response)));
          return scaled(echo, rms(track) / Math.max(rms(echo), 1e-9));
        })
      : tracks;
    const sum = new Float32Array(tracks[0]?.length ?? 0).map((_, i) =>
      heard.reduce((all, track) => all + (track[i] ?? 0), 0),
    );
    return telephone ? throughTelephone(stored('mix.wav', sum)) : sum;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
