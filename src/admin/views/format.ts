/** Formats numbers for people. */
import type { Category } from '../../category.ts';

/** Shown for a value that was not measured. */
const NONE = '–';

export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 99.95 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function milliseconds(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return NONE;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  return ms < 99_950 ? `${(ms / 1000).toFixed(ms < 9995 ? 2 : 1)} s` : duration(ms);
}

/** Whole seconds and the larger units: `12 s`, `3 min 4 s`, `2 h 5 min`, `3 d 2 h`. */
export function duration(ms: number): string {
  const sec = Math.max(0, Math.floor(ms / 1000));
  const min = Math.floor(sec / 60);
  const hours = Math.floor(min / 60);
  if (min === 0) return `${sec} s`;
  if (hours === 0) return `${min} min ${sec % 60} s`;
  if (hours < 48) return `${hours} h ${min % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function seconds(sec: number | null | undefined): string {
  return sec === null || sec === undefined ? NONE : `${sec.toFixed(1)} s`;
}

/** A real-time factor or another small ratio. */
export function ratio(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  return value.toFixed(value < 10 ? 2 : 1);
}

export function percent(share: number): string {
  const value = share * 100;
  return `${value === 0 || value >= 10 ? Math.round(value) : value.toFixed(1)} %`;
}

export function counted(count: number, one: string): string {
  return `${count} ${count === 1 ? one : `${one}s`}`;
}

/** The names of the three capabilities on the pages. */
export const CATEGORY_NAMES: Readonly<Record<Category, string>> = {
  asr: 'Speech to text',
  tts: 'Speech',
  llm: 'Chat',
};
