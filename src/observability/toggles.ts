/** Switches for the operator while the gateway runs. They are only in memory: a restart returns to the settings. */

export const TOGGLE_KEYS = ['metrics', 'access_log', 'payload'] as const;
export type ToggleKey = (typeof TOGGLE_KEYS)[number];

/** Each may be changed at any time. */
export type Toggles = Record<ToggleKey, boolean>;

/** Checks a key that comes from a client. */
export function isToggleKey(key: unknown): key is ToggleKey {
  return TOGGLE_KEYS.some((known) => known === key);
}
