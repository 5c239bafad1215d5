/** Asks an upstream for something that costs it nothing, and says in words why it does not answer as it should. */
import { withoutTrailingSlashes } from '../address.ts';

export interface Probed {
  url: string;
  /** Sent as a bearer. */
  apiKey: string | undefined;
}

/**
 * The answer to a GET of a path of the upstream.
 * @throws UpstreamProblem in place of the errors of `fetch`
 */
export async function probe({ url, apiKey }: Probed, path: string, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
  try {
    return await fetch(withoutTrailingSlashes(url) + path, { headers, signal });
  } catch (error) {
    throw new UpstreamProblem(reasonOf(error));
  }
}

/** Why an upstream cannot serve; the message goes on after its name. */
export class UpstreamProblem extends Error {
  override readonly name = 'UpstreamProblem';
}

export const NOT_STARTED = 'refuses the connection';
export const WANTS_KEY = ', so it wants a key';

/** What a status from 400 up says of the upstream. */
export function problemOfStatus(status: number, path: string): UpstreamProblem {
  const means = status === 401 || status === 403 ? WANTS_KEY : '';
  return new UpstreamProblem(`answers ${path} with status ${status}${means}`);
}

/** Codes of OpenSSL and Node for a certificate that is not trusted or is for another name. */
const CERTIFICATE = /CERT|UNABLE_TO_(GET|VERIFY)|SELF_SIGNED|ERR_TLS/;

function reasonOf(error: unknown): string {
  const { name, cause, message } = error as Error & { cause?: NodeJS.ErrnoException };
  if (name === 'TimeoutError' || name === 'AbortError') return 'does not answer in time';
  const code = cause?.code ?? '';
  if (code === 'ECONNREFUSED') return NOT_STARTED;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'has a name that is not found (DNS)';
  if (CERTIFICATE.test(code))
    return `has a certificate that is not trusted (${code}); NODE_EXTRA_CA_CERTS can name its authority`;
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) return 'does not speak TLS';
  if (code === 'UND_ERR_SOCKET' || code.startsWith('HPE_')) return 'answers something that is no HTTP';
  return `cannot be reached (${code || message})`;
}
