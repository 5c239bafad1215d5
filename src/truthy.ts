/** The words of contract 4.6 that turn a switch on. Settings and form fields share them. */

const TRUTHY = ['1', 'on', 'true', 'yes', 'y'];

/** True for `1`, `on`, `true`, `yes` and `y` in any case; every other text turns a switch off. */
export function isTruthy(value: string): boolean {
  return TRUTHY.includes(value.trim().toLowerCase());
}
