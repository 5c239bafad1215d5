/**
 * Bytes of a bounded resource that clients share: the memory for the text fields of all forms, the space for all files.
 * Where they are used up, the address that holds most gives way to one that would hold at most half as much, and within
 * an address the body that holds most gives way by the same rule. So no client shuts out the others with bodies that it
 * never ends. A body that has arrived whole keeps what it holds.
 */
import { byteBudget } from './budgets.ts';

export interface ByteShare {
  /** False where the body has to be refused. */
  take(bytes: number): boolean;
  /** Tells that the body has arrived whole. */
  arrived(): void;
  /** Idempotent. */
  release(): void;
}

export interface ByteShares {
  /**
   * @param network the client, as `networkOf` names it
   * @param giveWay refuses the body, whose bytes are already another's
   */
  open(network: string, giveWay: () => void): ByteShare;
  /** True when a new body of this size would get its bytes now. */
  hasRoom(network: string, bytes: number): boolean;
}

interface Body {
  network: string;
  bytes: number;
  giveWay(): void;
}

export function createByteShares(maxBytes: number): ByteShares {
  const budget = byteBudget(maxBytes);
  const open = new Set<Body>();
  const arriving = new Set<Body>();

  function release(body: Body): void {
    open.delete(body);
    arriving.delete(body);
    budget.giveBack(body.bytes);
    body.bytes = 0;
  }

  function heldBy(network: string): number {
    return [...open].reduce((sum, body) => sum + (body.network === network ? body.bytes : 0), 0);
  }

  /** The body that gives way to one that would hold `wanted` bytes, `more` of which it does not hold yet. */
  function givingWay(network: string, wanted: number, more: number): Body | undefined {
    const largestFirst = [...arriving].toSorted((a, b) => b.bytes - a.bytes);
    const [other] = largestFirst
      .filter((body) => body.network !== network)
      .toSorted((a, b) => heldBy(b.network) - heldBy(a.network));
    if (other !== undefined && heldBy(other.network) >= 2 * (heldBy(network) + more)) return other;
    const own = largestFirst.find((body) => body.network === network);
    return own !== undefined && own.bytes >= 2 * wanted ? own : undefined;
  }

  function makeRoom({ network, bytes }: Body, more: number): boolean {
    const next = givingWay(network, bytes + more, more);
    if (next === undefined) return false;
    release(next);
    next.giveWay();
    return true;
  }

  return {
    open(network, giveWay) {
      const body = { network, bytes: 0, giveWay };
      open.add(body);
      arriving.add(body);
      return {
        take(bytes) {
          while (!budget.take(bytes)) if (!makeRoom(body, bytes)) return false;
          body.bytes += bytes;
          return true;
        },
        arrived: () => void arriving.delete(body),
        release: () => release(body),
      };
    },
    hasRoom: (network, bytes) => budget.left() >= bytes || givingWay(network, bytes, bytes) !== undefined,
  };
}
