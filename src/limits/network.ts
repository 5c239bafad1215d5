/** Names the clients that limits by address count together, and says who gives way where all places are taken. */
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

interface Holder {
  /** The client, as `networkOf` names it. */
  network: string;
}

/** How many of the places each network holds. */
export function shares(taken: Iterable<Holder>): (of: Holder) => number {
  const held = new Map<string, number>();
  for (const { network } of taken) held.set(network, (held.get(network) ?? 0) + 1);
  return ({ network }) => held.get(network) ?? 0;
}

/**
 * Those that may give way to a newcomer: of the network that holds most, if it holds at least two more than the
 * newcomer's. So one address cannot keep the others out, and two never take the same place from each other in turn.
 */
export function givingWay<T extends Holder>(
  candidates: readonly T[],
  held: (of: Holder) => number,
  newcomer: Holder,
): T[] {
  const most = Math.max(...candidates.map(held));
  return most < held(newcomer) + 2 ? [] : candidates.filter((candidate) => held(candidate) === most);
}
