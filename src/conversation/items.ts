/**
 * The items of a conversation, in order: messages, tool calls and their results. Their number and bytes of text are
 * limited. When there is no room for another one, the oldest are forgotten, as by a model with a small context.
 */
import { GatewayError } from '../errors.ts';
import type { Budgets } from '../limits/budgets.ts';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

/** A piece of a message. The text of audio is what was said in it; null while that is not known. */
export interface Part {
  kind: 'text' | 'audio';
  text: string | null;
}

export interface Message {
  kind: 'message';
  id: string;
  status: ItemStatus;
  role: 'system' | 'user' | 'assistant';
  parts: Part[];
}

/** What a user says. @param text null while it is not known */
export const saidBy = (id: string, text: string | null): Message => ({
  kind: 'message',
  id,
  status: 'completed',
  role: 'user',
  parts: [{ kind: 'audio', text }],
});

export interface ToolCall {
  kind: 'call';
  id: string;
  status: ItemStatus;
  callId: string;
  name: string;
  /** JSON, as the model wrote it. */
  arguments: string;
}

export interface ToolResult {
  kind: 'result';
  id: string;
  status: ItemStatus;
  callId: string;
  output: string;
}

export type Item = Message | ToolCall | ToolResult;

/** What is forgotten where there is no room for more. */
export interface Retention {
  /** The part of what there may be that stays, 0..1. Less than 1 leaves room, so that it happens less often. */
  ratio: number;
  /** The most tokens; null where only the limits of the server count. */
  tokens: number | null;
}

/** Tokens are estimated, because the tokenizer of the chat model is unknown. English has about four bytes in one. */
const BYTES_PER_TOKEN = 4;

/** Stands for the id of the item before the first one (OpenAI's `previous_item_id: "root"`). */
const FRONT = 'root';

export class History {
  readonly #limits: Budgets['conversation'];
  readonly #items: Item[] = [];
  /** The ids of calls that were forgotten, the latest at the end; at most as many as there may be items. */
  readonly #forgottenCalls = new Set<string>();
  /** Null where nothing is forgotten. */
  retention: Retention | null = { ratio: 1, tokens: null };

  constructor(limits: Budgets['conversation']) {
    this.#limits = limits;
  }

  get items(): readonly Item[] {
    return this.#items;
  }

  /**
   * Adds an item, at the end where `after` is absent.
   * @param after the id of the item before it, or `FRONT`
   * @returns the id of the item before it; null where it is the first
   * @throws GatewayError `item_create_duplicate_item_id`, `item_create_invalid_previous_item_id`
   */
  add(item: Item, after?: string | null): string | null {
    if (this.#indexOf(item.id) >= 0) throw new GatewayError('item_create_duplicate_item_id', { id: item.id });
    const at = this.#placeAfter(after);
    const previousId = this.#items[at - 1]?.id ?? null;
    this.#items.splice(at, 0, item);
    this.#forgetFor(item);
    return previousId;
  }

  find(id: string): Item | undefined {
    return this.#items[this.#indexOf(id)];
  }

  /** Whether a call was made, also one that was forgotten since: its tool may take its time. */
  hasCall(callId: string): boolean {
    return this.#forgottenCalls.has(callId) || hasCall(this.#items, callId);
  }

  /** False if there is no such item. */
  delete(id: string): boolean {
    const at = this.#indexOf(id);
    if (at >= 0) this.#items.splice(at, 1);
    return at >= 0;
  }

  #placeAfter(after: string | null | undefined): number {
    if (after === undefined || after === null) return this.#items.length;
    if (after === FRONT) return 0;
    const at = this.#indexOf(after);
    if (at < 0) throw new GatewayError('item_create_invalid_previous_item_id', { id: after });
    return at + 1;
  }

  #indexOf(id: string): number {
    return this.#items.findIndex((item) => item.id === id);
  }

  /** Forgets the oldest items where there are more than there may be, whose text may have grown. */
  forgetOldest(): void {
    const newest = this.#items.at(-1);
    if (newest !== undefined) this.#forgetFor(newest);
  }

  /** @throws GatewayError `conversation_full` where nothing may be forgotten and there is no room */
  requireRoom(): void {
    const { items, bytes } = this.#limits;
    if (this.retention !== null) return;
    if (this.#items.length >= items || this.#bytes() >= bytes)
      throw new GatewayError('conversation_full', { items, bytes });
  }

  #forgetFor(newest: Item): void {
    if (this.retention === null) return;
    const { ratio, tokens } = this.retention;
    const { items, bytes } = this.#limits;
    const most = Math.min(bytes, tokens === null ? bytes : tokens * BYTES_PER_TOKEN);
    let total = this.#bytes();
    if (this.#items.length <= items && total <= most) return;
    while (this.#items.length > items * ratio || total > most * ratio) {
      const oldest = this.#items.findIndex((item) => item !== newest);
      if (oldest < 0) return;
      for (const gone of this.#items.splice(oldest, 1)) {
        total -= bytesOf(gone);
        if (gone.kind === 'call') this.#rememberCall(gone.callId);
      }
    }
  }

  #rememberCall(callId: string): void {
    this.#forgottenCalls.add(callId);
    const [first] = this.#forgottenCalls;
    if (this.#forgottenCalls.size > this.#limits.items && first !== undefined)
      this.#forgottenCalls.delete(first);
  }

  #bytes(): number {
    return this.#items.reduce((sum, item) => sum + bytesOf(item), 0);
  }
}

export const hasCall = (items: readonly Item[], callId: string): boolean =>
  items.some((item) => item.kind === 'call' && item.callId === callId);

/** The bytes of the text that an item has. */
function bytesOf(item: Item): number {
  const { byteLength } = Buffer;
  if (item.kind === 'message') return item.parts.reduce((sum, { text }) => sum + byteLength(text ?? ''), 0);
  return item.kind === 'call' ? byteLength(item.name) + byteLength(item.arguments) : byteLength(item.output);
}

/** What is said and written in a message. */
export const textOf = ({ parts }: Message): string =>
  parts
    .map(({ text }) => text ?? '')
    .filter((text) => text !== '')
    .join('\n');
