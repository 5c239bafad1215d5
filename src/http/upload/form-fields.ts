/**
 * Collects the text fields of a form that an endpoint knows. A name is looked up and never turned into a structure, so
 * brackets, depth and indexes of a name cost nothing. Fields with other names are not kept.
 */
import { excerpt, invalidValue } from '../../errors.ts';
import { parsedJson } from '../../parsed-json.ts';

/** `name`, `name[]`, `name[7]` or `name[member]`. */
const NAME = /^([^[\]]+)(?:\[([^[\]]*)\])?$/;
const INDEX = /^\d+$/;
const EXPECTED = 'Expected at most one pair of brackets, as in name[], name[0] and name[member]';

/** What was sent for one field. */
interface Sent {
  /** Without a bracket, and with an empty one, in the order in which they came. */
  values: string[];
  /** By the index in the bracket, which orders them and is never a place in an array. */
  indexed: [index: number, value: string][];
  members: Map<string, string[]>;
  /** True where a bracket without a member says that the field is a list. */
  isList: boolean;
}

export type FormFields = ReturnType<typeof createFormFields>;

export function createFormFields(known: readonly string[]) {
  const fields = new Map<string, Sent>();

  /** The known field that a name is about, also where its brackets are wrong; undefined for a name to ignore. */
  function fieldOf(name: string): string | undefined {
    const bracket = name.indexOf('[');
    const field = bracket === -1 ? name : name.slice(0, bracket);
    return known.includes(field) ? field : undefined;
  }

  return {
    fieldOf,
    /** @throws GatewayError `invalid_value` for a known field whose brackets mean nothing */
    add(name: string, value: string): void {
      const field = fieldOf(name);
      if (field === undefined) return;
      const found = NAME.exec(name);
      if (found === null) throw invalidValue(excerpt(name), value, EXPECTED, field);
      const sent: Sent = fields.get(field) ?? { values: [], indexed: [], members: new Map(), isList: false };
      fields.set(field, sent);
      const bracket = found[2];
      if (bracket === undefined) sent.values.push(value);
      else if (bracket === '' || INDEX.test(bracket)) {
        sent.isList = true;
        if (bracket === '') sent.values.push(value);
        else sent.indexed.push([Number(bracket), value]);
      } else sent.members.set(bracket, [...(sent.members.get(bracket) ?? []), value]);
    },
    /**
     * The fields by name, in an object without a prototype: a text, an array of texts for a list, and for members an
     * object without a prototype. What does not fit together is in one array, which no field takes.
     */
    all(): Readonly<Record<string, unknown>> {
      const all: Record<string, unknown> = Object.create(null);
      for (const [field, sent] of fields) all[field] = sentValue(sent);
      return all;
    },
  };
}

function sentValue({ values, indexed, members, isList }: Sent): unknown {
  const ordered = indexed.toSorted(([a], [b]) => a - b).map(([, value]) => value);
  const list: unknown[] = [...values, ...ordered];
  if (members.size > 0) list.push(membersOf(members));
  return list.length === 1 && !isList ? list[0] : list;
}

function membersOf(members: Sent['members']): Readonly<Record<string, unknown>> {
  const object: Record<string, unknown> = Object.create(null);
  for (const [name, values] of members) object[name] = values.length === 1 ? values[0] : values;
  return object;
}

/**
 * The text of a part that says it is JSON (`application/json`): a text in quotes without them, and any other value as it
 * is written. What is no JSON is taken as it is, because some clients declare the type of every part so.
 */
export function textOfJson(value: string): string {
  const trimmed = value.trim();
  if (trimmed === 'null') return '';
  if (!trimmed.startsWith('"')) return trimmed;
  const text = parsedJson(trimmed);
  return typeof text === 'string' ? text : value;
}
