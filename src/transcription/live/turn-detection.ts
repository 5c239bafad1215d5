/**
 * Turns that a model ends: whether someone who has paused is done, and how long a pause may be where the model says no.
 * The longest silences are those that OpenAI documents for `eagerness` of `semantic_vad`.
 */
import type { ModelCache } from '../../engine/cache.ts';
import type { TurnDetector } from '../../engine/types.ts';
import { GatewayError } from '../../errors.ts';
import { TURN_DETECTION } from '../../models/catalogue.ts';
import { windowsIn } from '../speech/voice-activity.ts';

export const EAGERNESS = ['auto', 'low', 'medium', 'high'] as const;
export type Eagerness = (typeof EAGERNESS)[number];

interface Patience {
  /** From this probability on the turn counts as complete. */
  threshold: number;
  /** Windows of silence that end any turn. */
  longestSilence: number;
}

const MEDIUM: Patience = { threshold: 0.5, longestSilence: windowsIn(4000) };

export const PATIENCE: Readonly<Record<Eagerness, Patience>> = {
  auto: MEDIUM,
  low: { threshold: 0.7, longestSilence: windowsIn(8000) },
  medium: MEDIUM,
  high: { threshold: 0.3, longestSilence: windowsIn(2000) },
};

/** The model is asked once in each pause, after as many windows of silence as it was trained with, 200 ms. */
export const ASKED_AFTER = windowsIn(200);
/** The most windows that the model hears, 8 s. */
export const HEARD_WINDOWS = windowsIn(8000);

export type TurnDetection = ReturnType<typeof createTurnDetection>;

const GONE = 'they were removed while a session used them';

/** All sessions share one model, which takes one call after the other and keeps nothing of them. */
export function createTurnDetection(
  detectors: Pick<ModelCache<TurnDetector>, 'lease' | 'entries'>,
  store: { isInstalled(id: string): boolean },
) {
  const { id } = TURN_DETECTION;
  // A loaded model serves on when its file is gone.
  const isInstalled = () => detectors.entries().some(({ key }) => key === id) || store.isInstalled(id);
  async function lease() {
    if (!isInstalled()) throw new GatewayError('model_not_installed', { model: id, why: GONE });
    return detectors.lease(id);
  }
  return {
    /** Whether the weights are there. They are never fetched while someone speaks. */
    isInstalled,
    /** Loads the model while someone speaks, so that no pause waits for that; a failure shows with the pause. */
    async warm(): Promise<void> {
      try {
        await using _detector = await lease();
      } catch {
        // The pause that needs the model says why it cannot be had.
      }
    },
    /**
     * The probability, 0..1, that the turn which ends with these samples is complete. There are at most 8 s of them.
     * @throws GatewayError `model_not_installed` when the weights were removed meanwhile
     */
    async probability(samples: Float32Array, signal: AbortSignal): Promise<number> {
      await using detector = await lease();
      return await detector.model.probability(samples, { signal });
    },
  };
}
