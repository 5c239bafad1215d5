/**
 * The chat daemon's API, as a conversation uses it: chat completions that are streamed (OpenAI's API reference,
 * `POST /v1/chat/completions`, `stream: true`). Daemons differ in how they send the calls of tools and what a model
 * thinks; what is known of Ollama, llama.cpp's server and vLLM is read here.
 */
import type { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { setDeadline } from '../../limits/deadline.ts';
import { parsedJson } from '../../parsed-json.ts';
import { answerFailed, type Upstream, UpstreamTimeout } from '../../proxy/upstream.ts';
import type { Answered } from '../../proxy/upstream-call.ts';
import { type Item, textOf } from '../items.ts';

/** A function that the model may call. */
export interface Tool {
  name: string;
  description?: string | undefined;
  /** A JSON schema. */
  parameters?: unknown;
}

/** Whether the model calls tools: as it likes, never, always, or this one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { name: string };

export interface ChatRequest {
  model: string | undefined;
  instructions: string;
  items: readonly Item[];
  tools: readonly Tool[];
  toolChoice: ToolChoice;
  /** Null where there is no limit. */
  maxTokens: number | null;
}

export interface ChatUsage {
  inputTokens: number;
  cachedTokens: number;
  outputTokens: number;
}

export type ChatEvent =
  | { kind: 'text'; text: string }
  /** A call begins. Its id is empty where the daemon gives none. */
  | { kind: 'call'; id: string; name: string }
  /** More of the arguments of a call: the first that began is 0. */
  | { kind: 'arguments'; call: number; text: string }
  | { kind: 'usage'; usage: ChatUsage }
  /** `length` and `content_filter` mean that more would have come. */
  | { kind: 'finish'; reason: string };

/** The body of the request. */
export function chatBody({ model, instructions, items, tools, toolChoice, maxTokens }: ChatRequest): object {
  const system = instructions.trim() === '' ? [] : [{ role: 'system', content: instructions }];
  return {
    ...(model !== undefined && { model }),
    messages: [...system, ...messagesOf(items)],
    stream: true,
    stream_options: { include_usage: true },
    ...(maxTokens !== null && { max_tokens: maxTokens }),
    ...(tools.length > 0 && {
      tools: tools.map((tool) => ({ type: 'function', function: tool })),
      tool_choice:
        typeof toolChoice === 'string'
          ? toolChoice
          : { type: 'function', function: { name: toolChoice.name } },
    }),
  };
}

interface ChatMessage {
  role: string;
  content: string | null;
  tool_calls?: object[];
  tool_call_id?: string;
}

/**
 * The messages that the items are. The API wants calls in a message of the assistant and their results right behind it,
 * while in a conversation somebody may speak before a tool has its result. A call without a result is left out, and so is
 * a result without its call, which may have been forgotten or deleted: daemons refuse both.
 */
function messagesOf(items: readonly Item[]): ChatMessage[] {
  const results = new Map(items.flatMap((item) => (item.kind === 'result' ? [[item.callId, item]] : [])));
  const messages: ChatMessage[] = [];
  /** The results of the calls in the last message. */
  let due: ChatMessage[] = [];
  const settle = () => {
    messages.push(...due);
    due = [];
  };
  for (const item of items) {
    const result = item.kind === 'call' ? results.get(item.callId) : undefined;
    if (item.kind !== 'call') settle();
    if (item.kind === 'message') {
      const content = textOf(item);
      if (content !== '') messages.push({ role: item.role, content });
    } else if (item.kind === 'call' && result !== undefined) {
      results.delete(item.callId);
      const { callId: id, name } = item;
      const call = { id, type: 'function', function: { name, arguments: item.arguments } };
      const last = messages.at(-1);
      if (last?.role === 'assistant') last.tool_calls = [...(last.tool_calls ?? []), call];
      else messages.push({ role: 'assistant', content: null, tool_calls: [call] });
      due.push({ role: 'tool', tool_call_id: id, content: result.output });
    }
  }
  settle();
  return messages;
}

type Failure = (why: string) => GatewayError;

/**
 * The events of an answer, as they come.
 * @throws GatewayError `upstream_failed` for an answer that is none, that breaks off or that has an error in it
 */
export async function* chatEvents(
  { headers, body }: Answered,
  daemon: Upstream,
  limits: Pick<Budgets['conversation'], 'chatLineBytes' | 'calls'>,
): AsyncGenerator<ChatEvent> {
  const failed: Failure = (why) => answerFailed(daemon, `its answer ${why}`);
  const reader = new ChunkReader(failed, limits.calls);
  const isWhole = /^application\/json\b/i.test(headers['content-type'] ?? '');
  let rest: Buffer = Buffer.alloc(0);
  for await (const bytes of body) {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    if (!isWhole)
      for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
        const line = rest.toString('utf8', 0, end);
        rest = rest.subarray(end + 1);
        yield* reader.line(line);
        if (reader.isOver) return;
      }
    if (rest.length > limits.chatLineBytes) throw failed('has a line that is too long');
  }
  if (isWhole) yield* reader.whole(rest.toString());
  else if (rest.length > 0) yield* reader.line(rest.toString());
  if (!reader.isFinished) throw failed('broke off');
}

/**
 * Passes the events on. A daemon that sends bytes but writes nothing, such as one that thinks without end, is given up
 * after `silentMs`, because its call holds the slot. Once it has said why its answer ends, only the count of its tokens
 * may follow, and that is waited for no longer than `closingMs`.
 * @param call ends the call of the daemon
 */
export async function* inTime(
  events: AsyncIterable<ChatEvent>,
  call: AbortController,
  { silentMs, closingMs }: { silentMs: number; closingMs: number },
): AsyncGenerator<ChatEvent> {
  let isFinished = false;
  const late = (ms: number) =>
    call.abort(new UpstreamTimeout('ERR_SILENT', `nothing was written for ${ms / 1000} s`));
  let lift = setDeadline(silentMs, () => late(silentMs));
  try {
    for await (const event of events) {
      lift();
      yield event;
      isFinished ||= event.kind === 'finish';
      const ms = isFinished ? closingMs : silentMs;
      lift = setDeadline(ms, () => late(ms));
    }
  } catch (error) {
    if (!isFinished) throw error;
  } finally {
    lift();
  }
}

const NEWLINE = 0x0a;
/** llama.cpp's server has a field of its own for an error, and others send one that is no event. */
const DATA = /^(?:data|error):\s*|^(?=\{)/;
/** Reasons of an end that leaves the answer in the middle (vLLM, SGLang, OpenRouter). */
const BROKEN = new Set(['abort', 'error', 'cancelled']);

interface Delta {
  content?: unknown;
  tool_calls?: unknown;
}
interface Choice {
  delta?: Delta | null;
  message?: Delta | null;
  finish_reason?: unknown;
}

/** Reads the chunks of an answer; any field may be missing in any of them. */
class ChunkReader {
  /** True once the daemon has said why the answer ends. */
  isFinished = false;
  /** True once it has said that nothing more comes. */
  isOver = false;
  readonly #failed: Failure;
  readonly #mostCalls: number;
  readonly #thoughts = new Thoughts();
  /** The calls so far. An id is empty where the daemon gives none. */
  readonly #calls: { id: string; index: unknown }[] = [];

  constructor(failed: Failure, mostCalls: number) {
    this.#failed = failed;
    this.#mostCalls = mostCalls;
  }

  *line(line: string): Generator<ChatEvent> {
    if (!DATA.test(line)) return;
    const data = line.replace(DATA, '').trim();
    if (data === '[DONE]') {
      this.isOver = true;
      this.isFinished = true;
      yield* this.#text('', true);
    } else if (data !== '') yield* this.whole(data);
  }

  *whole(json: string): Generator<ChatEvent> {
    const value = parsedJson(json);
    if (value === undefined) throw this.#failed('is not JSON');
    const chunk = Object(value) as Record<string, unknown>;
    const error = chunk.error || (chunk.choices === undefined && (chunk.message ?? chunk.detail));
    if (error) throw this.#failed(`says: ${messageOf(error)}`);
    const [choice] = (Array.isArray(chunk.choices) ? chunk.choices : []) as Choice[];
    if (choice) yield* this.#choice(choice);
    if (chunk.usage) yield { kind: 'usage', usage: usageOf(chunk.usage) };
  }

  *#choice(choice: Choice): Generator<ChatEvent> {
    const delta = choice.delta ?? choice.message ?? {};
    const isLast = typeof choice.finish_reason === 'string' && choice.finish_reason !== '';
    yield* this.#text(typeof delta.content === 'string' ? delta.content : '', isLast);
    for (const call of Array.isArray(delta.tool_calls) ? delta.tool_calls : []) yield* this.#toolCall(call);
    if (!isLast) return;
    const reason = String(choice.finish_reason);
    if (BROKEN.has(reason)) throw this.#failed(`was broken off (${reason})`);
    this.isFinished = true;
    yield { kind: 'finish', reason };
  }

  *#text(content: string, isLast: boolean): Generator<ChatEvent> {
    const text = this.#thoughts.without(content, isLast);
    if (text !== '') yield { kind: 'text', text };
  }

  /**
   * A call begins with its name. Some daemons repeat its id with each piece, some leave that empty or send another one,
   * some give each call the index 0, and the pieces of several calls may come in turn.
   */
  *#toolCall(sent: unknown): Generator<ChatEvent> {
    const { id, index, function: named } = Object(sent) as Record<string, unknown>;
    const { name, arguments: args } = Object(named) as Record<string, unknown>;
    const callId = typeof id === 'string' ? id : '';
    let call = this.#callOf(callId, index);
    if (typeof name === 'string' && name !== '' && (callId === '' || callId !== this.#calls[call]?.id)) {
      call = this.#calls.push({ id: callId, index }) - 1;
      if (call >= this.#mostCalls) throw this.#failed('calls too many tools');
      yield { kind: 'call', id: callId, name };
    } else if (call < 0) throw this.#failed('calls a tool without a name');
    const text = typeof args === 'string' ? args : JSON.stringify(args ?? '');
    if (args) yield { kind: 'arguments', call, text };
  }

  /** The call that a piece belongs to: the last with its id, else with its index; -1 where there is none. */
  #callOf(id: string, index: unknown): number {
    const named = id === '' ? -1 : this.#calls.findLastIndex((call) => call.id === id);
    return named >= 0
      ? named
      : this.#calls.findLastIndex((call) => (call.index ?? index) === (index ?? call.index));
  }
}

function messageOf(error: unknown): string {
  const { message } = Object(error) as { message?: unknown };
  return String(message ?? (typeof error === 'string' ? error : 'an error')).slice(0, 500);
}

function usageOf(sent: unknown): ChatUsage {
  const usage = Object(sent) as Record<string, unknown>;
  const count = (value: unknown) =>
    Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;
  const { cached_tokens: cached } = Object(usage.prompt_tokens_details) as Record<string, unknown>;
  return {
    inputTokens: count(usage.prompt_tokens),
    cachedTokens: count(cached),
    outputTokens: count(usage.completion_tokens),
  };
}

const THINK = '<think>';
const THOUGHT = '</think>';

/** Leaves out what a model thinks before it answers, where the daemon does not keep it apart. */
class Thoughts {
  #state: 'before' | 'within' | 'behind' = 'before';
  #held = '';

  /** @param isLast whether nothing more comes */
  without(content: string, isLast: boolean): string {
    if (this.#state === 'behind') return content;
    this.#held += content;
    if (this.#state === 'before') {
      const text = this.#held.trimStart();
      if (!isLast && text.length < THINK.length && THINK.startsWith(text)) return '';
      if (!text.startsWith(THINK)) return this.#release(this.#held);
      this.#state = 'within';
    }
    const end = this.#held.indexOf(THOUGHT);
    if (end >= 0) return this.#release(this.#held.slice(end + THOUGHT.length).trimStart());
    this.#held = this.#held.slice(-THOUGHT.length);
    return '';
  }

  #release(text: string): string {
    this.#held = '';
    this.#state = 'behind';
    return text;
  }
}
