/** Names the clients that limits by address (rate limits, bounded places, queues) count together. */
import { isIPv6 } from 'node:net';

/** One client has at least a network of 64 bits of IPv6, and could take every address of it. */
export function networkOf(address: string): string {
  if (!isIPv6(address) || /^::ffff:\d+\./i.test(address)) return address;
  const [before = '', after] = address.split('::', 2);
  const groups = before === '' ? [] : before.split(':');
  const rest = after === undefined || after === '' ? [] : after.split(':');
  const whole = [...groups, ...Array(Math.max(0, 8 - groups.length - rest.length)).fill('0'), ...rest];
  return whole.slice(0, 4).join(':');
}
