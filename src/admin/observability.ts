/** The routes of the dashboard's switches for what is recorded of the traffic, and for deleting all captures. */
import type { RequestHandler, Response } from 'express';
import { invalidValue } from '../errors.ts';
import { isToggleKey, TOGGLE_KEYS } from '../observability/toggles.ts';
import { isTruthy } from '../truthy.ts';
import { sendHtml } from './answer.ts';
import type { AdminDeps } from './deps.ts';
import { readForm } from './form.ts';
import { counted } from './views/format.ts';
import { observabilityView } from './views/observability.ts';

type Deps = Pick<AdminDeps, 'toggles' | 'captures' | 'log'>;

export function observability(deps: Deps): RequestHandler {
  return (_req, res) => show(deps, res);
}

export function toggle(deps: Deps): RequestHandler {
  return async (req, res) => {
    const { key, value } = await readForm(req, res);
    if (!isToggleKey(key)) {
      throw invalidValue('key', key, `Expected ${TOGGLE_KEYS.join(', ')}`);
    }
    if (typeof value !== 'string') {
      throw invalidValue('value', value, 'Expected one text; 1, on, true, yes or y turn it on');
    }
    deps.toggles.set(key, isTruthy(value));
    deps.log.info('switched by the operator', { key, on: deps.toggles.get(key) });
    await show(deps, res);
  };
}

export function clearPayload(deps: Deps): RequestHandler {
  return async (_req, res) => {
    const deleted = await deps.captures.clear();
    deps.log.info('captures deleted by the operator', { deleted });
    await show(deps, res, `${counted(deleted, 'capture')} deleted.`);
  };
}

async function show({ toggles, captures }: Deps, res: Response, said: string | null = null): Promise<void> {
  const usage = await captures.usage();
  sendHtml(res, observabilityView({ toggles: toggles.all(), captureDir: captures.dir, ...usage }, said));
}
