/** Refuses requests that HTTP itself does not allow, before any other check (RFC 9110 and 9112). */
import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { ALL_METHODS } from '../route-table.ts';
import { httpRefusal } from './refusals.ts';

const NO_HOST = /[/?#@\\\s]/;

/**
 * Whether every server finds the same end of this request, and so the same beginning of the next one. Node's parser
 * takes other codings before `chunked` and any version. Servers of HTTP/1.0 know no codings (RFC 9112, sections 2.3
 * and 6.1).
 */
export function hasClearEnd({ httpVersion, headers }: IncomingMessage): boolean {
  const coding = headers['transfer-encoding']?.toLowerCase();
  return httpVersion === '1.1'
    ? coding === undefined || coding === 'chunked'
    : httpVersion === '1.0' && coding === undefined;
}

export function wellFormed({ headFields }: Pick<Budgets['connection'], 'headFields'>): RequestHandler {
  return (req, res, next) => {
    if (req.rawHeaders.length / 2 > headFields) throw httpRefusal(431);
    const hosts = req.headersDistinct.host?.length ?? 0;
    // RFC 9112, section 3.2: with two Host headers, or without the one that is required, the target server is unknown.
    // A Host that is more than a name and a port could be read as two different names.
    if (hosts > 1 || (hosts === 0 && req.httpVersion !== '1.0') || NO_HOST.test(req.get('Host') ?? ''))
      throw httpRefusal(400);
    const expected = req.get('Expect')?.toLowerCase() ?? '100-continue';
    if (expected !== '100-continue' && req.httpVersion !== '1.0') throw httpRefusal(417);
    if (req.method === 'CONNECT') {
      res.setHeader('Allow', ALL_METHODS.join(', '));
      throw new GatewayError('method_not_allowed', {
        method: 'CONNECT',
        allowed: 'another method, because this server makes no tunnels',
      });
    }
    next();
  };
}
