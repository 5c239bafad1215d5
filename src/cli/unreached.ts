/** Why a gateway was not reached, with what to do; null for an error that says so itself. */
export function unreached(error: unknown, base: string): string | null {
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ECONNREFUSED':
      return `no gateway answers at ${base}: start one with voxgate serve, or correct the address`;
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host of ${base} is not known: correct the address, or look at the network`;
    case 'ECONNRESET':
    case 'EPIPE':
      return `the connection to ${base} broke off`;
    default:
      return null;
  }
}
