/** What other machines can do with a gateway that has these settings, in words for the operator. */
import { isLoopback } from '../address.ts';

interface Reach {
  host: string;
  apiKeys: readonly string[];
  wyomingPort: number | undefined;
}

/** Over HTTP every request needs a key then, and over Wyoming, which has none, it would not. */
const passesKeys = ({ host, apiKeys, wyomingPort }: Reach) =>
  wyomingPort !== undefined && apiKeys.length > 0 && !isLoopback(host);

/**
 * Why the gateway may not start; null if it may.
 * @param isMeant the operator has said that Wyoming may pass by the keys
 */
export function refusesWyoming(reach: Reach, isMeant: boolean): string | null {
  if (isMeant || !passesKeys(reach)) return null;
  const open = `SVC_WYOMING_PORT with SVC_HOST=${reach.host} would let other machines pass by SVC_API_KEY`;
  return `${open}: Wyoming has no keys; SVC_WYOMING_KEYLESS=on allows it, for a network that is trusted`;
}

/** What is open to every machine that reaches the gateway. */
export function exposure(reach: Reach): string[] {
  if (passesKeys(reach)) return ['everyone who reaches SVC_WYOMING_PORT may transcribe: Wyoming has no keys'];
  if (isLoopback(reach.host) || reach.apiKeys.length > 0) return [];
  const open = `SVC_HOST=${reach.host} lets other machines reach the gateway, and SVC_API_KEY is not set`;
  return [`${open}: everyone who reaches it may use all of it, the dashboard included`];
}
