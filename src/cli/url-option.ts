/** The address of a gateway on the command line. */
import { InvalidArgumentError } from 'commander';

/** @throws InvalidArgumentError when it is no address of HTTP */
export function toUrl(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new InvalidArgumentError('Expected an address such as http://127.0.0.1:8000.');
  return value;
}
