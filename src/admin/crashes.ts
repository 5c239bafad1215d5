/** The routes that show which ends of the server were not asked for, as JSON and on the dashboard. */
import type { RequestHandler } from 'express';
import type { CrashRecord } from '../crashes/crashes.ts';
import { sendHtml, sendJson } from './answer.ts';
import type { AdminDeps } from './deps.ts';
import { crashesView } from './views/crashes.ts';

type Deps = Pick<AdminDeps, 'crashes'>;

export function listCrashes({ crashes }: Deps): RequestHandler {
  return (_req, res) => sendJson(res, { crashes: crashes.list().map(toWire) });
}

export function showCrashes({ crashes }: Deps): RequestHandler {
  return (_req, res) => sendHtml(res, crashesView(crashes.list()));
}

function toWire({ uptimeSec, exitCode, requestId, ...rest }: CrashRecord) {
  return { ...rest, uptime_sec: uptimeSec, exit_code: exitCode, request_id: requestId };
}
