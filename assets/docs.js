/**
 * The page of the API: Swagger UI over `/openapi.json`. Left to itself, Swagger UI gives every field of a form a made-up
 * value, and sends them all. Here a form begins with the description's example, and what that does not name is empty.
 */

const api = document.getElementById('api');
const list = document.getElementById('list');

/** The description, without what only the dashboard asks for. */
function forReaders({ paths, ...rest }) {
  const shown = Object.entries(paths).map(([path, methods]) => {
    const operations = Object.entries(methods).filter(([, operation]) => !operation['x-internal']);
    return [path, Object.fromEntries(operations.map(([method, one]) => [method, forReader(one, rest)]))];
  });
  const kept = shown.filter(([, methods]) => Object.keys(methods).length > 0);
  return whole({ ...rest, paths: Object.fromEntries(kept) }, rest);
}

function forReader({ parameters = [], requestBody, responses, ...operation }, { components }) {
  return {
    ...operation,
    // The headers that any request may have are told once, above.
    parameters: parameters.filter(({ $ref }) => $ref === undefined),
    ...(requestBody && {
      requestBody: { ...requestBody, content: mapped(requestBody.content, withBeginnings) },
    }),
    // A shared answer is a line; the envelope of errors is among the schemas.
    responses: mapped(responses, ({ $ref, ...own }) =>
      $ref === undefined
        ? { ...own, content: mapped(own.content ?? {}, withSample) }
        : { description: components.responses[$ref.split('/').at(-1)].description },
    ),
  };
}

/** Of an answer whose shape is the upstream's there is no sample. */
const withSample = (media) => (Object.keys(media.schema).length > 0 ? media : {});

/** Puts what a reference leads to in its place, under its name. */
function whole(value, description) {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => whole(item, description));
  if (typeof value.$ref !== 'string') return mapped(value, (member) => whole(member, description));
  const path = value.$ref.split('/').slice(1);
  const target = path.reduce((part, name) => part[name], description);
  return whole(path[1] === 'schemas' ? { title: path.at(-1), ...target } : target, description);
}

const mapped = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value, name)]));

/** Swagger UI reads the examples of fields, and not that of a whole form. A field that is left empty is not sent. */
function withBeginnings(media, type) {
  if (type === 'application/json') return media;
  const { schema, example = {}, ...rest } = media;
  const properties = mapped(schema.properties, ({ anyOf, ...field }, name) => {
    // Of several types it would show the first alone.
    const plain = anyOf === undefined ? field : { ...field, type: 'string' };
    if (plain.format === 'binary') return plain;
    return { ...plain, example: example[name] ?? (plain.type === 'array' ? [] : '') };
  });
  return { ...rest, schema: { ...schema, properties } };
}

/** Says that fields may be added, which samples would show as `additionalProp1`, and the range of all integers. */
const withoutNoise = (key, value) =>
  key === 'additionalProperties' || Math.abs(value) === Number.MAX_SAFE_INTEGER ? undefined : value;

const nothing = () => null;

/** Left to itself, Swagger UI would ask for the address once more, with GET, to play what a POST has answered. */
const withPlayableAudio =
  (ResponseBody, { React }) =>
  (answer) => {
    const { content, contentType } = answer;
    const isAudio = /^audio\//i.test(contentType) && content instanceof Blob;
    const src = React.useMemo(() => (isAudio ? URL.createObjectURL(content) : ''), [isAudio, content]);
    React.useEffect(() => () => URL.revokeObjectURL(src), [src]);
    if (!isAudio) return React.createElement(ResponseBody, answer);
    return React.createElement('audio', { controls: true, src, 'aria-label': 'The answer' });
  };

/** The page has a head of its own, and no buttons that say what is clear or do what Execute does. */
const page = () => ({
  components: {
    Layout: ({ getComponent, React }) =>
      React.createElement(
        'div',
        { className: 'swagger-ui' },
        ...['AuthorizeBtnContainer', 'errors', 'operations', 'Models'].map((name) =>
          React.createElement(getComponent(name, true), { key: name }),
        ),
      ),
    // It would be a link inside of a button. The address still follows the operation that is open.
    DeepLink: ({ text }) => text,
    ParameterIncludeEmpty: nothing,
    TryItOutButton: nothing,
    authorizeOperationBtn: nothing,
    CopyToClipboardBtn: nothing,
  },
  wrapComponents: { responseBody: withPlayableAudio },
  statePlugins: {
    spec: {
      wrapActions: {
        // There is no reference left to follow, and its own search for them takes a second for each operation.
        requestResolvedSubtree:
          (_original, { specActions, specSelectors }) =>
          (path) =>
            specActions.updateResolvedSubtree(path, specSelectors.specJson().getIn(path).toJS()),
      },
    },
  },
});

/** What Swagger UI leaves out for keyboards and screen readers: elements, and what is done to each. */
const MENDS = {
  '[data-property-name] :is(input, select, textarea)': (control) =>
    control.setAttribute('aria-label', control.closest('tr').dataset.propertyName),
  '[data-param-name] :is(input, select, textarea)': (control) =>
    control.setAttribute('aria-label', control.closest('tr').dataset.paramName),
  '.body-param textarea': (control) => control.setAttribute('aria-label', 'Request body'),
  '.responses-table[role]': (table) => table.removeAttribute('role'),
  'pre.microlight': (scrolled) => scrolled.setAttribute('tabindex', '0'),
};

function mend() {
  for (const [selector, change] of Object.entries(MENDS))
    for (const element of api.querySelectorAll(selector)) change(element);
}

/** Shows and says the answer of a request, which appears below a form that may be longer than the window. */
function showAnswer(operation) {
  const [answer] = operation.getElementsByClassName('live-responses-table');
  answer.scrollIntoView({ block: 'nearest' });
  document.getElementById('status').textContent = `Answer: ${answer.querySelector('tbody td').textContent}`;
}

new MutationObserver((changes) => {
  mend();
  replaceList();
  for (const { addedNodes } of changes)
    for (const node of addedNodes)
      if (node instanceof Element && node.querySelector('.live-responses-table')) showAnswer(node);
}).observe(api, { childList: true, subtree: true });

function element(name, className, ...children) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...children);
  return made;
}

/** The operations as links, which are there long before Swagger UI is. */
function showList({ tags, paths }) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
  );
  list.replaceChildren();
  for (const { name, description } of tags) {
    const rows = operations.filter((one) => one.tags.includes(name)).map((one) => row(name, one));
    // What is between backticks is code.
    const words = description.split('`').map((part, at) => (at % 2 === 1 ? element('code', '', part) : part));
    list.append(element('h3', 'group', name, ' ', element('small', '', ...words)), ...rows);
  }
}

function row(tag, { method, path, operationId, summary }) {
  const parts = path.split(/(?=\/)/).flatMap((part) => [document.createElement('wbr'), part]);
  const words = element('span', 'words', element('code', '', ...parts), ' ', element('span', '', summary));
  const link = element('a', method, element('b', 'method', method.toUpperCase()), ' ', words);
  link.href = `#/${encodeURIComponent(tag)}/${operationId}`;
  return link;
}

/** Puts Swagger UI in the place of the list. What the reader looks at stays where it is, and what has the focus has it. */
function replaceList() {
  if (!list.isConnected || api.querySelector('.opblock') === null) return;
  const controlOf = ({ hash }) =>
    api.querySelector(`[id$="-${hash.split('/').at(-1)}"] .opblock-summary-control`);
  const top = (of) => of.getBoundingClientRect().top;
  const focused = document.activeElement.closest('#list a');
  const seen = scrollY > 0 && [...list.querySelectorAll('a')].find((link) => top(link) >= 0);
  const was = seen && top(seen);
  list.remove();
  if (focused) controlOf(focused).focus({ preventScroll: true });
  if (seen) scrollBy({ top: top(controlOf(seen)) - was, behavior: 'instant' });
}

/**
 * Swagger UI takes a phone half a second to start, in which the page would not move. There it waits until the reader
 * acts, or has had the list for a while.
 */
const UNTOUCHED_MS = 3000;
const BUNDLE = 'docs/swagger-ui-bundle.js';
const ACTS = ['click', 'keydown', 'focusin', 'scroll', 'hashchange'];

const wanted = () =>
  new Promise((resolve) => {
    for (const act of ACTS) addEventListener(act, resolve, { once: true });
    setTimeout(resolve, UNTOUCHED_MS);
  });

const painted = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

const run = (src) =>
  new Promise((resolve, reject) => {
    const script = document.createElement('script');
    document.head.append(Object.assign(script, { src, onload: resolve, onerror: reject }));
  });

/** Where the API begins: a reverse proxy may have put it below a path of its own. */
const base = new URL('.', location.href).href.slice(0, -1);
document.getElementById('base-url').textContent = `${base}/v1`;

const waits = location.hash === '' && matchMedia('(pointer: coarse)').matches;
list.append(element('p', 'note', 'Loading the operations…'));
const running = waits ? null : run(BUNDLE);
const start = async () => {
  const description = forReaders(JSON.parse(await (await fetch('openapi.json')).text(), withoutNoise));
  if (waits) {
    showList(description);
    await painted();
    document.head.append(
      Object.assign(document.createElement('link'), { rel: 'preload', as: 'script', href: BUNDLE }),
    );
    await wanted();
  }
  await (running ?? run(BUNDLE));
  globalThis.SwaggerUIBundle({
    spec: { ...description, servers: [{ url: base }] },
    dom_id: '#api',
    presets: [globalThis.SwaggerUIBundle.presets.apis],
    plugins: [page],
    layout: 'Layout',
    deepLinking: true,
    tryItOutEnabled: true,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    syntaxHighlight: { activated: false },
    validatorUrl: null,
  });
};
await start().catch(() =>
  list.replaceChildren(
    element('p', 'notice warn', 'The operations could not be loaded. Reload the page to try again.'),
  ),
);
