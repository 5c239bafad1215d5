/** The choice among several microphones, which this browser remembers. */
import { rememberSettings } from './settings.js';

/**
 * @param field is hidden where there is nothing to choose
 * @param select gets the microphones
 * @param onChange () => void
 */
export function createMicrophoneChoice(field, select, onChange) {
  /** A browser tells the names of microphones to a page that may listen, and to no other. */
  async function refresh() {
    const devices = await navigator.mediaDevices.enumerateDevices();
    const known = devices.filter(
      ({ kind, deviceId, label }) => kind === 'audioinput' && deviceId !== '' && label,
    );
    const before = select.value;
    const options = known
      .filter(({ deviceId }) => deviceId !== 'default')
      .map(({ label, deviceId }) => new Option(label, deviceId));
    select.replaceChildren(new Option('System default', ''), ...options);
    select.value = options.some(({ value }) => value === before) ? before : '';
    field.hidden = options.length === 0;
  }

  rememberSettings(`voxgate-${select.id}`, [select]);
  select.addEventListener('input', onChange);
  if (navigator.mediaDevices !== undefined) {
    navigator.mediaDevices.addEventListener('devicechange', refresh);
    refresh();
  }
  return { refresh, read: () => select.value };
}
