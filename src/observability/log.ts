/** The logger of the process. It writes lines for people to standard error, and leaves standard output to results. */
import winston from 'winston';
import { BUDGETS } from '../budgets.ts';
import { excerpt } from '../errors.ts';

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
  return excerpt(
    `${timestamp} ${level.padEnd(5)} ${message}${details.join('')}`,
    BUDGETS.log.maxLineCharacters,
  );
}
