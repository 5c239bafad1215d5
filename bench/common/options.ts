/** Options that several benches share. */
import { parseArgs } from 'node:util';

export const THREADS = { type: 'string', default: '2' } as const;
export const GATEWAY_MODEL = { type: 'string', default: 'multilingual-base' } as const;
/** Takes at most this many clips or sounds of each group. */
export const MOST = { type: 'string', default: '1000' } as const;
/** Takes the half of the clips on which settings may be tuned, not the one that judges them. */
export const TUNING = { type: 'boolean', default: false } as const;
/** Takes the answers of peers that an earlier run wrote down; they have no times. */
export const CACHED = { type: 'boolean', default: false } as const;
/** Writes each table into its place in docs/ or bench/results/. */
export const WRITE = { type: 'boolean', default: false } as const;
/** Address of a running gateway; one is started when absent. */
export const URL_OPTION = { type: 'string' } as const;

/** The names of a list with commas, in the order in which they are known. Others end the process. */
export function chosen<T extends string>(option: string, list: string, known: readonly T[]): T[] {
  const names = list.split(',');
  const unknown = names.find((name) => !known.some((id) => id === name));
  if (unknown !== undefined) refuse(`--${option} has ${unknown}, which is none of ${known.join(', ')}`);
  return known.filter((name) => names.includes(name));
}

export function refuse(reason: string): never {
  process.stderr.write(`${reason}\n`);
  process.exit(2);
}

/** Reads the options of a bench whose options are all numbers. */
export function numberOptions<Name extends string>(defaults: Readonly<Record<Name, number>>) {
  const names = Object.keys(defaults) as Name[];
  const options = names.map((name) => [name, { type: 'string', default: String(defaults[name]) }] as const);
  const { values } = parseArgs({ options: Object.fromEntries(options) });
  return Object.fromEntries(names.map((name) => [name, Number(values[name])])) as Record<Name, number>;
}
