/**
 * The headers that the description names, each defined once in its `components`. One is required only where no answer
 * lacks it: an upstream's own 405 or 503 is passed on with the headers that it has.
 */
import { z } from 'zod';
import { REQUEST_ID } from '../server/request-id.ts';

export type Headers = Readonly<Record<string, z.ZodType>>;

/** The description stands at the header only, and not a second time in its schema. */
const header = (id: string, description: string, schema: z.ZodType = z.string().optional()): Headers => ({
  [id]: schema.meta({ header: { id, description } }),
});

/** Every answer has these. */
export const ANY_ANSWER = header(
  'X-Request-ID',
  'the id of the request in the log: that of the client where it is well-formed, else 16 hex digits',
  z.string(),
);
/** How a transcription was made. A stream has begun before its time is known. */
export const RECOGNIZED: Headers = {
  ...header('X-Voxgate-Model', 'the id of the model that was chosen', z.string()),
  ...header('X-Voxgate-Route', 'why: `requested`, or `auto:` and the rule', z.string()),
  ...header('OpenAI-Processing-Ms', 'how long the answer took; not on a stream', z.int().min(0).optional()),
};
export const RETRY_AFTER = header(
  'Retry-After',
  'seconds until another try may succeed; of the gateway’s own 503, only a busy slot has it',
  z.int().min(0).optional(),
);
export const SHOULD_RETRY = header(
  'X-Should-Retry',
  '`false`: another try will not help soon. Absent where the slot is busy, too many clients came, or the gateway stops',
);
export const PREFERENCE = header(
  'Preference-Applied',
  '`wait=N`: how long the request could wait, in seconds; absent where it could not',
);
export const ALLOW = header('Allow', 'the methods of this path');

const param = (id: string, description: string, schema = z.string()): Headers => ({
  [id]: schema.optional().meta({ param: { id, description } }),
});
/** What a client may send with any request. */
export const ANY_REQUEST = param(
  'X-Request-ID',
  'an id of your own; an invalid one is replaced',
  z.string().regex(REQUEST_ID),
);
/** What a request that takes the slot may ask for. */
export const WAIT = param(
  'Prefer',
  '`wait=N`: wait for a busy slot for at most N seconds (RFC 7240; SVC_MAX_WAIT_SEC allows it)',
);
