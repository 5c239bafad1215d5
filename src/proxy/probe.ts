/** Asks an upstream for something that costs it nothing, and says in words why it does not answer as it should. */
import { withoutTrailingSlashes } from '../address.ts';
import type { UpstreamConfig } from '../config/config.ts';

/** The key is sent as a bearer. */
type Probed = Pick<UpstreamConfig, 'url' | 'apiKey'>;

/**
 * The answer to a GET of a path of the upstream.
 * @throws UpstreamProblem in place of the errors of `fetch`
 */
export async function probe({ url, apiKey }: Probed, path: string, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
  try {
    return await fetch(withoutTrailingSlashes(url) + path, { headers, signal });
  } catch (error) {
    throw problemOf(error);
  }
}

/** The causes, as `/metrics` names them. */
export const PROBLEM_KINDS = [
  'refused',
  'name',
  'unreachable',
  'tls',
  'timeout',
  'not-http',
  'wants-key',
  'status',
  'not-json',
] as const;
export type ProblemKind = (typeof PROBLEM_KINDS)[number];

/** Why an upstream cannot serve; the message goes on after its name. */
export class UpstreamProblem extends Error {
  override readonly name = 'UpstreamProblem';
  readonly kind: ProblemKind;
  /** What it answered with, of the kinds `status` and `wants-key`. */
  readonly status: number | undefined;

  constructor(kind: ProblemKind, message: string, status?: number) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

export const timedOut = () => new UpstreamProblem('timeout', 'does not answer in time');

/** What a status from 400 up says of the upstream. */
export function problemOfStatus(status: number, path: string, { apiKey }: Probed): UpstreamProblem {
  const answers = `answers ${path} with status ${status}`;
  if (status !== 401 && status !== 403) return new UpstreamProblem('status', answers, status);
  const means = apiKey === undefined ? 'wants a key' : 'refuses the key that it is sent';
  return new UpstreamProblem('wants-key', `${answers}, so it ${means}`, status);
}

/** Codes of OpenSSL and Node for a certificate that is not trusted or is for another name. */
const CERTIFICATE = /CERT|UNABLE_TO_(GET|VERIFY)|SELF_SIGNED|ERR_TLS/;

/** What is said of a certificate that its authority alone cannot mend. */
const CERTIFICATES: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has a certificate that has expired',
  CERT_NOT_YET_VALID: 'has a certificate that is not valid yet by the clock of this machine',
  ERR_TLS_CERT_ALTNAME_INVALID: 'has a certificate for another name',
};

/** The problem behind an error of `fetch`. */
function problemOf(error: unknown): UpstreamProblem {
  const { name, cause, message } = error as Error & { cause?: NodeJS.ErrnoException };
  if (name === 'TimeoutError' || name === 'AbortError') return timedOut();
  const code = cause?.code ?? '';
  const problem = (kind: ProblemKind, says: string) => new UpstreamProblem(kind, says);
  if (code === 'ECONNREFUSED') return problem('refused', 'refuses the connection');
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return problem('name', 'has a name that is not found (DNS)');
  if (CERTIFICATE.test(code))
    return problem('tls', CERTIFICATES[code] ?? `has a certificate that is not trusted (${code})`);
  if (code === 'EPROTO' || code.startsWith('ERR_SSL')) return problem('tls', 'does not speak TLS');
  if (code === 'UND_ERR_SOCKET' || code.startsWith('HPE_'))
    return problem('not-http', 'answers something that is no HTTP');
  return problem('unreachable', `cannot be reached (${code || cause?.message || message})`);
}
