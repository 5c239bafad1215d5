/** Models of the addon's scripted backend, which run on threads of their own and are as slow as a schedule needs. */
import type { TranscriptionModel } from '../../src/engine/types.ts';
import { loadFake } from '../native/fixtures.ts';

const SCRIPTS = [
  ['segment 0 300 Hello there.'],
  ['delay_ms 5', 'segment 0 300 Hello there.', 'delay_ms 5'],
  ['load_delay_ms 5', 'delay_ms 3', 'segment 0 300 Hello there.'],
  ['ignore_cancel_ms 8', 'segment 0 300 Hello there.'],
];

export function loadScripted(random: () => number): Promise<TranscriptionModel> {
  return loadFake('language en 0.9', ...(SCRIPTS[Math.floor(random() * SCRIPTS.length)] ?? []));
}
