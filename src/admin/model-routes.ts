/** The routes of the models on the dashboard: list them; pull, load or unload one; unload all. */
import type { RequestHandler } from 'express';
import { sendEither, sendHtml } from './answer.ts';
import type { ModelActions } from './deps.ts';
import { counted } from './views/format.ts';
import { modelsView } from './views/models.ts';

export function models(admin: ModelActions): RequestHandler {
  return (_req, res) => sendHtml(res, modelsView(admin.list()));
}

export function changeModel(admin: ModelActions, verb: 'pull' | 'load' | 'unload'): RequestHandler {
  return (req, res) => {
    // An alias may hold slashes.
    const id = admin.find([req.params.id].flat().join('/'));
    admin[verb](id);
    sendEither(
      req,
      res,
      () => modelsView(admin.list()),
      () => ({ id, state: admin.list().find((model) => model.id === id)?.state }),
    );
  };
}

export function resetAsrState(admin: ModelActions): RequestHandler {
  return (req, res) => {
    const { evicted, remaining } = admin.reset();
    const left = remaining === 0 ? '' : ` ${counted(remaining, 'model')} in memory until the request ends.`;
    sendEither(
      req,
      res,
      () => modelsView(admin.list(), `${counted(evicted, 'model')} unloaded.${left}`),
      () => ({ evicted, remaining }),
    );
  };
}
