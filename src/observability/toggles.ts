/** Switches for the operator while the gateway runs. They are only in memory: a restart returns to the settings. */

export const TOGGLE_KEYS = ['metrics', 'access_log', 'payload'] as const;
export type ToggleKey = (typeof TOGGLE_KEYS)[number];

export interface Toggles {
  get(key: ToggleKey): boolean;
  set(key: ToggleKey, on: boolean): void;
  /** A copy of all switches, in the order of TOGGLE_KEYS. */
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

/** Checks a key that comes from a client. */
export function isToggleKey(key: unknown): key is ToggleKey {
  return TOGGLE_KEYS.some((known) => known === key);
}
