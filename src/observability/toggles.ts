/** What the operator may switch while the gateway runs. Memory only: a restart returns to the settings. */

export const TOGGLE_KEYS = ['metrics', 'access_log', 'payload'] as const;
export type ToggleKey = (typeof TOGGLE_KEYS)[number];

export interface Toggles {
  get(key: ToggleKey): boolean;
  set(key: ToggleKey, on: boolean): void;
  /** A copy, in the order of TOGGLE_KEYS. */
  all(): Record<ToggleKey, boolean>;
}

export function createToggles({ metrics, access_log, payload }: Record<ToggleKey, boolean>): Toggles {
  const state = { metrics, access_log, payload };
  return {
    get: (key) => state[key],
    set(key, on) {
      state[key] = on;
    },
    all: () => ({ ...state }),
  };
}

/** For keys that come from outside. */
export function isToggleKey(key: unknown): key is ToggleKey {
  return TOGGLE_KEYS.some((known) => known === key);
}
