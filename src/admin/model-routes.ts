import type { RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';
import { sendEither, sendHtml } from './answer.ts';
import type { ModelActions } from './deps.ts';
import { counted } from './views/format.ts';
import { modelsView } from './views/models.ts';

export function models(admin: ModelActions): RequestHandler {
  return (_req, res) => sendHtml(res, modelsView(admin.list()));
}

export function changeModel(admin: ModelActions, verb: 'pull' | 'load' | 'unload'): RequestHandler {
  return (req, res) => {
    const id = String(req.params.id);
    const find = () => admin.list().find((model) => model.id === id);
    if (find() === undefined) {
      throw new GatewayError('not_found', 'There is no such model', { code: 'model_not_found', param: 'id' });
    }
    admin[verb](id);
    sendEither(
      req,
      res,
      () => modelsView(admin.list()),
      () => ({ id, state: find()?.state }),
    );
  };
}

export function resetAsrState(admin: ModelActions): RequestHandler {
  return (req, res) => {
    const { evicted, remaining } = admin.reset();
    const left = remaining === 0 ? '' : ` ${remaining} remain.`;
    sendEither(
      req,
      res,
      () => modelsView(admin.list(), `${counted(evicted, 'model')} unloaded.${left}`),
      () => ({ evicted, remaining }),
    );
  };
}
