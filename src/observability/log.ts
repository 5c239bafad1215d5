/** The logger of the process. It writes lines for people to standard error, and leaves standard output to results. */
import winston from 'winston';
import { excerpt } from '../errors.ts';
import { BUDGETS } from '../limits/budgets.ts';

export function createLog(level: string): winston.Logger {
  const { combine, timestamp, printf } = winston.format;
  return winston.createLogger({
    level,
    format: combine(timestamp(), printf(toLine)),
    transports: [new winston.transports.Console({ stderrLevels: ['error', 'warn', 'info', 'debug'] })],
  });
}

function toLine({ timestamp, level, message, ...rest }: winston.Logform.TransformableInfo): string {
  const details = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const line = `${timestamp} ${level.padEnd(5)} ${message}${details.join('')}`;
  return excerpt(line.replace(CONTROL, escaped), BUDGETS.log.maxLineCharacters);
}

/** Control characters, but for the ends of lines before one that is indented, as those of a stack, and so has no time. */
const CONTROL = /(?!\n {4})\p{Cc}/gu;

/** What clients send is quoted in the log. It must not look like an entry of its own, nor steer a terminal. */
const escaped = (control: string) =>
  control === '\n' ? '\\n' : `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`;
