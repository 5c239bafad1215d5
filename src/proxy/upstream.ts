/** The services that requests are forwarded to, and the errors that clients get for their failures. */
import type { Category } from '../category.ts';
import type { UpstreamConfig } from '../config/config.ts';
import { GatewayError } from '../errors.ts';

export interface Upstream extends UpstreamConfig {
  readonly category: Exclude<Category, 'asr'>;
  /** True for a path of the gateway that leads to it. */
  takes(path: string): boolean;
  /** The name in messages. */
  readonly name: string;
  /** What the operator can do when the upstream cannot be reached. */
  readonly hint: string;
}

/** What is below `/v1/audio` and not the speech upstream's. */
export const OWN_AUDIO = ['transcriptions', 'translations', 'alignments'];
/** What the chat daemon answers, and all that is below it. */
export const CHAT_PATHS = ['/v1/chat/completions', '/v1/completions', '/v1/embeddings', '/v1/responses'];

export function speechUpstream(config: UpstreamConfig): Upstream {
  const hint = 'start the speech container, or set SVC_TTS_UPSTREAM_URL';
  const isOwn = (path: string) => OWN_AUDIO.some((name) => `${path}/`.startsWith(`/v1/audio/${name}/`));
  const takes = (path: string) => path.startsWith('/v1/audio/') && path !== '/v1/audio/' && !isOwn(path);
  return { ...config, category: 'tts', takes, name: 'speech upstream', hint };
}

export function chatUpstream(config: UpstreamConfig): Upstream {
  const hint = 'start the chat daemon, or set SVC_LLM_BACKEND_URL';
  const takes = (path: string) => CHAT_PATHS.some((own) => path === own || path.startsWith(`${own}/`));
  return { ...config, category: 'llm', takes, name: 'chat daemon', hint };
}

/** Error codes that mean that nothing answered at the address, unlike an upstream that answers and fails. */
const UNREACHABLE = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAI_FAIL',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ERR_CONNECT_TIMEOUT',
];

/** The upstream did not accept a connection (`ERR_CONNECT_TIMEOUT`) or sent nothing for too long (`ERR_SILENT`). */
export class UpstreamTimeout extends Error {
  override readonly name = 'UpstreamTimeout';
  readonly code: 'ERR_CONNECT_TIMEOUT' | 'ERR_SILENT';

  constructor(code: UpstreamTimeout['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/** The error for an answer of an upstream that is none. @param why goes on after its name */
export const answerFailed = ({ name, category }: Upstream, why: string): GatewayError =>
  new GatewayError('upstream_failed', { upstream: name, why }, { provider: category });

/** The error for a client. @param error the error of the HTTP client; a GatewayError is returned unchanged */
export function upstreamError(error: unknown, { category, name, hint }: Upstream): GatewayError {
  if (error instanceof GatewayError) return error;
  const { name: type, message, code } = error as NodeJS.ErrnoException;
  if (UNREACHABLE.includes(code ?? '')) {
    return new GatewayError(
      'upstream_unreachable',
      { upstream: name, why: code ?? type, hint },
      { provider: category, cause: error },
    );
  }
  return new GatewayError(
    code === 'ERR_SILENT' ? 'upstream_timeout' : 'upstream_failed',
    { upstream: name, why: `${code ?? type}: ${message}` },
    { provider: category, cause: error },
  );
}
