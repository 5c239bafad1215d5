/** The models on the dashboard: whether each is on disk, in memory or being downloaded; pull, load or unload one; unload all. */
import type { Request, RequestHandler, Response } from 'express';
import { invalidValue } from '../errors.ts';
import { sendEither } from './answer.ts';
import { readForm } from './form.ts';
import type { ModelActions, ModelStatus } from './model-actions.ts';
import { type Action, button, outcome } from './views/actions.ts';
import { bytes, counted, duration } from './views/format.ts';
import { type Html, html } from './views/html.ts';

/** An alias may hold slashes. */
const idOf = (admin: ModelActions, req: Request) => admin.find([req.params.id].flat().join('/'));

function answer(admin: ModelActions, req: Request, res: Response, id: string, said?: string): void {
  const state = admin.list().find((model) => model.id === id)?.state;
  sendEither(req, res, modelsView(admin, said), { id, state });
}

export function changeModel(admin: ModelActions, verb: 'pull' | 'load' | 'unload'): RequestHandler {
  return (req, res) => {
    const id = idOf(admin, req);
    admin[verb](id);
    answer(admin, req, res, id);
  };
}

/** Removing weights cannot be undone, so the form must have `sure=yes`, which the dashboard sends once it has asked. */
export function removeModel(admin: ModelActions): RequestHandler {
  return async (req, res) => {
    const id = idOf(admin, req);
    const { sure } = await readForm(req, res);
    if (sure !== 'yes') throw invalidValue('sure', sure, 'Expected yes');
    admin.remove(id);
    answer(admin, req, res, id, `Removing ${id} from disk.`);
  };
}

export function resetAsrState(admin: ModelActions): RequestHandler {
  return (req, res) => {
    const { evicted, remaining } = admin.reset();
    const left =
      remaining === 0 ? '' : ` ${counted(remaining, 'model')} still in use, unloaded when the request ends.`;
    const view = modelsView(admin, `${counted(evicted, 'model')} unloaded.${left}`);
    sendEither(req, res, view, { evicted, remaining });
  };
}

/** The section polls more often while a model is being downloaded or loaded. */
export function modelsView(
  { list, downloads }: Pick<ModelActions, 'list' | 'downloads'>,
  said: string | null = null,
): Html {
  const models = list();
  const resident = models.filter(({ state }) => state === 'resident').length;
  // Models that are absent are folded away, except those that are being fetched or have failed.
  const present = models.filter(
    ({ installed, state, progress, failure }) =>
      installed || state !== 'absent' || progress !== null || failure !== null,
  );
  const others = models.filter((model) => !present.includes(model));
  const memory = models.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
  const moving = models.some(({ state, progress }) => state === 'loading' || progress !== null);
  return html`<div class="card-head"><h2>Models</h2><div class="row"><span class="note">${resident} in memory${memory > 0 && `, using ${bytes(memory)}`}</span>${
    resident > 0 &&
    button({
      label: 'Unload all',
      post: 'admin/api/reset-asr-state',
      section: 'models',
      key: 'unload-all',
      confirm:
        'Unload every model? Requests in progress finish first. The next request loads its model again.',
    })
  }</div></div>
${moving && html`<span data-key="faster" hx-get="admin/fragments/models" hx-target="#models" hx-sync="#models:abort" hx-trigger="every 2s"></span>`}
${outcome(said)}
${
  models.length === 0
    ? html`<p class="empty soft" data-key="empty">No models are available.</p>`
    : html`${present.length > 0 && tableOf(present, 'present')}
${
  present.length === 0 &&
  html`<p class="soft" data-key="none">No models on disk yet. Pull one below${downloads && ', or the first request downloads one'}.</p>`
}
${
  others.length > 0 &&
  html`<details data-key="others" class="others"><summary>${counted(others.length, 'other model')} to pull</summary>${tableOf(others, 'absent')}</details>`
}`
}`;
}

const tableOf = (models: readonly ModelStatus[], key: string): Html =>
  html`<table class="cards models" data-key="${key}"><thead><tr><th scope="col">Model</th><th scope="col" class="number">Size</th><th scope="col">State</th><th scope="col"><span class="visually-hidden">Actions</span></th></tr></thead>
<tbody>${models.map(row)}</tbody></table>`;

function row(model: ModelStatus): Html {
  return html`<tr data-key="${model.id}"><th scope="row">${model.id}<span class="note">${model.family}</span></th>
<td class="number">${bytes(model.bytes)}</td>
<td>${stateView(model)}</td>
<td class="actions">${actions(model).map(button)}</td></tr>`;
}

function stateView(model: ModelStatus): Html {
  const { id, state, installed, leases, idleForMs, progress, failure, memoryBytes } = model;
  const [label, className] =
    state === 'resident'
      ? ['in memory', 'badge good']
      : state === 'loading'
        ? ['loading', 'badge accent']
        : installed
          ? ['on disk', 'badge']
          : ['not installed', 'badge'];
  return html`${progress === null && html`<span class="${className}" data-key="badge">${label}</span>`}
${memoryBytes > 0 && html` <span class="note" data-key="memory">${bytes(memoryBytes)}</span>`}
${leases > 0 && html` <span class="note" data-key="use">${counted(leases, 'request')} using it</span>`}
${idleForMs !== null && html` <span class="note" data-key="idle">idle for ${duration(idleForMs)}</span>`}
${
  progress !== null &&
  html`<div class="fetching" data-key="progress"><span class="note">${progress.phase} ${progress.what}: ${bytes(progress.doneBytes)}${
    progress.totalBytes !== null && ` of ${bytes(progress.totalBytes)}`
  }</span><progress aria-label="${id}: ${progress.phase}"${
    progress.totalBytes !== null &&
    html` max="${progress.totalBytes}" value="${Math.min(progress.doneBytes, progress.totalBytes)}"`
  }></progress></div>`
}
${failure !== null && html`<p class="failure" data-key="failure">${failure}</p>`}`;
}

/** The actions that make sense in the state of the model; none while it is being downloaded or loaded. */
function actions({ id, installed, state, progress, bytes: size }: ModelStatus): Action[] {
  const action = (label: string, verb: string, detail = ''): Action => ({
    label,
    fullLabel: `${label} ${id}${detail}`,
    post: `admin/api/models/${encodeURIComponent(id)}/${verb}`,
    section: 'models',
    key: `${verb}-${id}`,
  });
  if (progress !== null || state === 'loading') return [];
  const remove: Action = {
    ...action('Remove', 'remove'),
    className: 'small danger',
    values: { sure: 'yes' },
    confirm: `Remove ${id} from disk (${bytes(size)})? You can pull it again later.`,
  };
  if (state === 'resident') return [action('Unload', 'unload'), ...(installed ? [remove] : [])];
  if (installed) return [action('Load', 'load'), remove];
  return [action('Pull', 'pull', `, ${bytes(size)}`)];
}
