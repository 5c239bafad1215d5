/** The switch words of contract 4.6, which settings and form fields share. */

const TRUTHY = ['1', 'on', 'true', 'yes', 'y'];

/** True for `1`, `on`, `true`, `yes` and `y` in any case; every other text turns a switch off. */
export function isTruthy(value: string): boolean {
  return TRUTHY.includes(value.trim().toLowerCase());
}
