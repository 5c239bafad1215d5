/**
 * The memory that the text fields of all forms share. Where it is used up, the form that holds the most gives way to one
 * that would hold at most half as much. So no client shuts out the others with a form that it never ends. A form that
 * has arrived whole keeps what it holds.
 */
import { byteBudget } from '../budgets.ts';

export interface FieldShare {
  /** False where the form has to be refused. */
  take(bytes: number): boolean;
  /** Tells that the form has arrived whole. */
  arrived(): void;
  /** Idempotent. */
  release(): void;
}

export interface FieldMemory {
  /** @param giveWay refuses the form, whose memory is already another's */
  open(giveWay: () => void): FieldShare;
}

interface Form {
  bytes: number;
  giveWay(): void;
}

export function createFieldMemory(maxBytes: number): FieldMemory {
  const budget = byteBudget(maxBytes);
  const arriving = new Set<Form>();

  function release(form: Form): void {
    arriving.delete(form);
    budget.giveBack(form.bytes);
    form.bytes = 0;
  }

  function makeRoom(form: Form, bytes: number): boolean {
    const [largest] = [...arriving].toSorted((a, b) => b.bytes - a.bytes);
    if (largest === undefined || largest.bytes < 2 * (form.bytes + bytes)) return false;
    release(largest);
    largest.giveWay();
    return true;
  }

  return {
    open(giveWay) {
      const form = { bytes: 0, giveWay };
      arriving.add(form);
      return {
        take(bytes) {
          while (!budget.take(bytes)) if (!makeRoom(form, bytes)) return false;
          form.bytes += bytes;
          return true;
        },
        arrived: () => void arriving.delete(form),
        release: () => release(form),
      };
    },
  };
}
