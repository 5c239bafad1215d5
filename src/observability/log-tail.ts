/**
 * The last lines of the process's log, for the dashboard. They are those that were written, cut, and one that holds a key
 * of the gateway is left out: the log itself is read by fewer people.
 */
import { Writable } from 'node:stream';
import winston from 'winston';
import { excerpt } from '../errors.ts';
import { type HoldsKey, MASKED } from '../gateway-keys.ts';

const MAX_LINES = 100;
const LINE_CHARS = 500;

export interface LogLine {
  /** Counts all lines since the start. */
  number: number;
  text: string;
  level: 'error' | 'warn' | 'info' | 'debug';
}

export function createLogTail(log: winston.Logger, holdsKey: HoldsKey) {
  const kept: LogLine[] = [];
  let number = 0;
  const keep = (line: string) => {
    const text = excerpt(holdsKey(line) ? MASKED : line.trimEnd(), LINE_CHARS);
    kept.unshift({ number: ++number, text, level: levelOf(line) });
    if (kept.length > MAX_LINES) kept.pop();
  };
  const stream = new Writable({
    decodeStrings: false,
    write(line, _encoding, done) {
      keep(String(line));
      done();
    },
  });
  const transport = new winston.transports.Stream({ stream });
  log.add(transport);
  /** The newest line comes first. */
  return { lines: () => [...kept], stop: () => void log.remove(transport) };
}

const levelOf = (line: string): LogLine['level'] =>
  (/^\S+ (error|warn|info|debug)\b/.exec(line)?.[1] as LogLine['level'] | undefined) ?? 'info';
