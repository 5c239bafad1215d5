/**
 * `node chat.mjs [PORT] [WEIGHTS.gguf]` runs a chat daemon, llama.cpp over the generated model of tiny-gguf.mjs, or over
 * weights that were trained to chat. It makes a token only when the client has taken those before, and none for a client
 * that is gone. With `tool_choice` "required", or a function's name, a grammar holds the model to the call of a tool, and
 * with `ignore_eos` one keeps it from ending, as in llama.cpp's server.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getLlama, LlamaGrammarEvaluationState, LlamaLogLevel } from 'node-llama-cpp';
import { clientSignal, HttpError, Jobs, readJson, sendJson, serve } from './http.mjs';
import { CONTEXT_LENGTH, writeTinyModel } from './tiny-gguf.mjs';

const weights = process.argv[3];
const MODEL = weights === undefined ? 'tiny' : basename(weights, '.gguf');
/** The generated weights never choose to end, so an answer without `max_tokens` ends here and says so with "stop". */
const ANSWER_TOKENS = 48;
/** A prompt leaves this much of the context free; past its end the oldest tokens are forgotten. */
const RESERVED_TOKENS = 512;

const cache = fileURLToPath(new URL('node_modules/.cache/', import.meta.url));
mkdirSync(cache, { recursive: true });
const modelPath = weights ?? `${cache}tiny.gguf`;
if (weights === undefined) writeTinyModel(modelPath);
const llama = await getLlama({ gpu: false, build: 'never', maxThreads: 1, logLevel: LlamaLogLevel.error });
const model = await llama.loadModel({ modelPath, defaultContextFlashAttention: false });
const endless = await llama.createGrammar({ grammar: 'root ::= [^\\x00] root' });

const startedAt = Math.floor(Date.now() / 1000);
const jobs = new Jobs();
let tokens = 0;

serve('chat', Number(process.argv[2] ?? 11434), {
  'GET /stats': (_req, res) => sendJson(res, 200, { ...jobs, tokens }),
  'GET /v1/models': (_req, res) => sendJson(res, 200, { object: 'list', data: [modelEntry()] }),
  'GET /api/tags': (_req, res) => sendJson(res, 200, { models: [ollamaEntry()] }),
  'POST /v1/chat/completions': chat,
});

function modelEntry() {
  return { id: MODEL, object: 'model', created: startedAt, owned_by: 'voxgate-test-upstreams' };
}

function ollamaEntry() {
  const name = `${MODEL}:latest`;
  const modified_at = new Date(startedAt * 1000).toISOString();
  const details = { format: 'gguf', family: 'llama', parameter_size: '31K', quantization_level: 'F32' };
  return { name, model: name, modified_at, size: model.size, digest: '', details };
}

async function chat(req, res) {
  const request = chatRequest(await readJson(req));
  const signal = clientSignal(res);
  await jobs.track(signal, () => (request.stream ? streamed : whole)(res, request, signal));
}

async function whole(res, request, signal) {
  if (request.tools.length > 0)
    throw new HttpError(400, 'not_streamed', 'A call of a tool is streamed only.', 'stream');
  let content = '';
  const usage = counter(request);
  for await (const piece of generate(request, signal)) {
    content += piece;
    usage.count();
  }
  const message = { role: 'assistant', content, refusal: null };
  const choice = { index: 0, message, logprobs: null, finish_reason: request.finish };
  sendJson(res, 200, { ...envelope('chat.completion'), choices: [choice], usage: usage.total() });
}

async function streamed(res, request, signal) {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  const head = envelope('chat.completion.chunk');
  const usage = counter(request);
  const send = async (data) => {
    if (!res.write(`data: ${data}\n\n`)) await once(res, 'drain', { signal });
  };
  const chunk = (delta, finish_reason = null) => {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason }];
    return JSON.stringify({ ...head, choices, ...(request.includeUsage ? { usage: null } : {}) });
  };
  await send(chunk({ role: 'assistant', content: '' }));
  for await (const delta of request.tools.length > 0 ? callOf(request, signal) : texts(request, signal)) {
    usage.count();
    await send(chunk(delta));
  }
  await send(chunk({}, request.tools.length > 0 ? 'tool_calls' : request.finish));
  if (request.includeUsage) await send(JSON.stringify({ ...head, choices: [], usage: usage.total() }));
  await send('[DONE]');
  res.end();
}

async function* texts(request, signal) {
  for await (const content of generate(request, signal)) yield { content };
}

/** A call as llama.cpp's server streams it: the id and the name first, then the arguments token by token. */
async function* callOf(request, signal) {
  const { tools } = request;
  const anyName = { grammar: `root ::= ${tools.map(({ name }) => JSON.stringify(name)).join(' | ')}` };
  const names = await llama.createGrammar(anyName);
  let name = '';
  for await (const piece of generate({ ...request, grammar: names }, signal)) name += piece;
  const { parameters = { type: 'object' } } = tools.find((tool) => tool.name === name) ?? {};
  const id = `call_${randomUUID()}`;
  yield { tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: '' } }] };
  const grammar = await llama.createGrammarForJsonSchema(parameters);
  const rest = model.tokenize(`${name}", "arguments": `);
  const asked = { ...request, prompt: [...request.prompt, ...rest], grammar };
  let json = '';
  for await (const piece of generate(asked, signal)) {
    json += piece;
    yield { tool_calls: [{ index: 0, function: { arguments: piece } }] };
    if (isWhole(json)) return; // the grammar lets spaces follow
  }
}

function isWhole(json) {
  try {
    return typeof JSON.parse(json) === 'object';
  } catch {
    return false;
  }
}

/**
 * Gives one piece of text for each token. Leaving the loop ends the generation, because the next token is made on
 * demand.
 */
async function* generate({ prompt, limit, sampling, grammar }, signal) {
  const context = await model.createContext({
    contextSize: CONTEXT_LENGTH,
    batchSize: CONTEXT_LENGTH,
    threads: 1,
  });
  try {
    let made = 0;
    const held = grammar && { grammarEvaluationState: new LlamaGrammarEvaluationState({ model, grammar }) };
    for await (const token of context.getSequence().evaluate(prompt, { ...sampling, ...held })) {
      signal.throwIfAborted();
      tokens++;
      yield model.detokenize([token], false, [token]);
      if (++made === limit) break;
    }
  } finally {
    await context.dispose();
  }
}

function chatRequest(body) {
  const {
    messages,
    stream = false,
    stream_options,
    max_tokens,
    max_completion_tokens,
    ignore_eos: isEndless = false,
    temperature = 1,
    top_p = 1,
  } = body;
  if (body.model !== MODEL && body.model !== `${MODEL}:latest`) {
    throw new HttpError(404, 'model_not_found', `The model "${body.model}" does not exist.`, 'model');
  }
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new HttpError(400, 'invalid_messages', '"messages" must be a non-empty array.', 'messages');
  }
  const asked = max_completion_tokens ?? max_tokens ?? null;
  if (asked !== null && !(Number.isInteger(asked) && asked > 0)) {
    throw new HttpError(400, 'invalid_max_tokens', '"max_tokens" must be a positive integer.', 'max_tokens');
  }
  const tools = toolsToCall(body);
  const prompt =
    weights === undefined ? plainPrompt(messages) : chatPrompt(messages, body.tools ?? [], tools);
  if (prompt.length > CONTEXT_LENGTH - RESERVED_TOKENS) {
    const message = `The prompt of ${prompt.length} tokens does not fit the context of ${CONTEXT_LENGTH}.`;
    throw new HttpError(400, 'context_length_exceeded', message, 'messages');
  }
  const seed = Number.isInteger(body.seed) ? body.seed : undefined;
  return {
    prompt,
    tools,
    stream: stream === true,
    includeUsage: stream_options?.include_usage === true,
    limit: asked ?? (isEndless ? Infinity : ANSWER_TOKENS),
    grammar: isEndless ? endless : undefined,
    finish: asked === null ? 'stop' : 'length',
    sampling: { temperature: Number(temperature), topP: Number(top_p), seed },
  };
}

/** The functions of which one is called; none where the model answers in words. */
function toolsToCall({ tools = [], tool_choice }) {
  const functions = tools.map((tool) => tool.function);
  if (tool_choice === 'required') return functions;
  return functions.filter(({ name }) => name === tool_choice?.function?.name);
}

function plainPrompt(messages) {
  const text = messages.map((message) => `${message?.role}: ${textOf(message)}\n`).join('');
  return [model.tokens.bos, ...model.tokenize(`${text}assistant:`)];
}

/** ChatML, in which SmolLM2 and others were trained, with the tools as JSON. */
function chatPrompt(messages, tools, toCall) {
  const listed = tools.map((tool) => JSON.stringify(tool.function)).join('\n');
  const system = tools.length === 0 ? [] : [{ role: 'system', content: `You have these tools:\n${listed}` }];
  const turns = [...system, ...messages].map(
    (message) => `<|im_start|>${message?.role}\n${textOf(message)}<|im_end|>\n`,
  );
  const begun = toCall.length === 0 ? '' : '{"name": "';
  return model.tokenize(`${turns.join('')}<|im_start|>assistant\n${begun}`, true);
}

/** Gives a text, joins the texts among the parts, or gives the calls of tools that stand in their place. */
function textOf(message) {
  const { content, tool_calls } = Object(message);
  if (content === null && Array.isArray(tool_calls)) return JSON.stringify(tool_calls);
  if (typeof content === 'string') return content;
  if (!Array.isArray(content))
    throw new HttpError(400, 'invalid_messages', 'A message has no content.', 'messages');
  return content.map((part) => (part?.type === 'text' ? part.text : '')).join('');
}

function envelope(object) {
  const created = Math.floor(Date.now() / 1000);
  return { id: `chatcmpl-${randomUUID()}`, object, created, model: MODEL };
}

function counter({ prompt }) {
  const prompt_tokens = prompt.length;
  let completion_tokens = 0;
  return {
    count: () => completion_tokens++,
    total: () => ({ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }),
  };
}
