/**
 * Reads the titles of the tests in a file from its source, so that a test need not run, or be able to, for its name
 * to be known. A computed part is `…`; values from a table of the same file are filled in, row by row.
 */
import type { BindingPattern, Node, Program } from 'oxc-parser';
import { childrenOf, parsed } from '../syntax-tree.ts';

const COMPUTED = '…';

/** An expression with the values of its names, which the loops around it bind. */
interface Value {
  node: Node;
  names: Names;
}

/** A value is null where the source does not spell it. */
type Names = ReadonlyMap<string, Value | null>;

/** A test within a test follows the outer title, as Node's reporter nests them: `a model works > twice`. */
export function titlesIn(path: string, source: string): Set<string> {
  if (path.endsWith('.cpp')) {
    const cases = source.matchAll(/^TEST\(\s*"((?:[^"\\]|\\.|"\s*")*)"/gm); // literals side by side are one
    return new Set([...cases].map(([, title = '']) => title.replace(/"\s*"/g, '')));
  }
  const titles = new Set<string>();
  const visit = (node: Node, around: string, names: Names): void => {
    if (node.type === 'ForOfStatement' && node.left.type === 'VariableDeclaration') {
      const pattern = node.left.declarations[0]?.id;
      for (const element of elementsOf({ node: node.right, names }) ?? [null])
        visit(node.body, around, bound(pattern, element, names));
      return;
    }
    let within = around;
    if (node.type === 'CallExpression' && isTest(node.callee) && node.arguments[0] !== undefined) {
      const title = textOf({ node: node.arguments[0], names });
      within = around === '' ? title : `${around} > ${title}`;
      titles.add(within);
    }
    for (const child of childrenOf(node)) visit(child, within, names);
  };
  const program = parsed(path, source);
  visit(program, '', constantsOf(program));
  // A title that is computed as a whole would match any name.
  titles.delete(COMPUTED);
  return titles;
}

/** `test` or `t.test`. */
function isTest(callee: Node): boolean {
  if (callee.type === 'Identifier') return callee.name === 'test';
  return (
    callee.type === 'MemberExpression' && isNamed(callee.object, 't') && isNamed(callee.property, 'test')
  );
}

function isNamed(node: Node | undefined, name: string): boolean {
  return node?.type === 'Identifier' && node.name === name;
}

function textOf({ node, names }: Value): string {
  const value = resolved({ node, names });
  if (value === null) return COMPUTED;
  const { node: found, names: known } = value;
  if (found.type === 'Literal' && ['string', 'number'].includes(typeof found.value)) return `${found.value}`;
  if (found.type !== 'TemplateLiteral') return COMPUTED;
  const texts = found.expressions.map((expression) => textOf({ node: expression, names: known }));
  return found.quasis.map(({ value }, i) => (value.cooked ?? '') + (texts[i] ?? '')).join('');
}

/** Follows names, members and `??` to their values; null where the value is not in the source. */
function resolved({ node, names }: Value): Value | null {
  switch (node.type) {
    case 'TSAsExpression':
      return resolved({ node: node.expression, names });
    case 'Identifier': {
      const value = names.get(node.name) ?? null;
      return value === null ? null : resolved(value);
    }
    case 'MemberExpression': {
      const { object, property, computed } = node;
      if (computed || property.type !== 'Identifier') return { node, names };
      return memberOf(resolved({ node: object, names }), property.name);
    }
    case 'LogicalExpression': {
      if (node.operator !== '??') return { node, names };
      const { left, right } = node;
      const isAbsent = left.type === 'Identifier' && isNamed(names.get(left.name)?.node, 'undefined');
      return resolved({ node: isAbsent ? right : left, names });
    }
    default:
      return { node, names };
  }
}

function memberOf(value: Value | null, name: string): Value | null {
  if (value?.node.type !== 'ObjectExpression') return null;
  for (const member of value.node.properties)
    if (member.type === 'Property' && !member.shorthand && isNamed(member.key, name))
      return resolved({ node: member.value, names: value.names });
  return null;
}

/**
 * Lists the elements of an array in the source, of one that a constant names, or of one that `map` makes of another.
 */
function elementsOf(value: Value): Value[] | null {
  const list = resolved(value);
  if (list === null) return null;
  const { node, names } = list;
  if (node.type === 'ArrayExpression')
    return node.elements
      .filter((one) => one !== null)
      .flatMap((one) =>
        one.type === 'SpreadElement'
          ? (elementsOf({ node: one.argument, names }) ?? [])
          : [{ node: one, names }],
      );
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return null;
  const { callee, arguments: given } = node;
  const [fn] = given;
  if (!isNamed(callee.property, 'map') || fn?.type !== 'ArrowFunctionExpression') return null;
  const { body, params } = fn;
  if (body.type === 'BlockStatement') return null;
  const from = elementsOf({ node: callee.object, names });
  const [pattern] = params;
  if (pattern?.type === 'TSParameterProperty' || pattern?.type === 'RestElement') return null;
  return from?.map((one) => ({ node: body, names: bound(pattern, one, names) })) ?? null;
}

/** Binds the names of a loop's pattern, for one element of its list. */
function bound(pattern: BindingPattern | undefined, element: Value | null, names: Names): Names {
  const inside = new Map(names);
  const value = element === null ? null : resolved(element);
  if (pattern?.type === 'Identifier') return inside.set(pattern.name, element);
  if (pattern?.type === 'ArrayPattern')
    pattern.elements.forEach((part, i) => {
      const name = nameOf(part);
      const item = value?.node.type === 'ArrayExpression' ? value.node.elements[i] : null;
      if (name !== null) inside.set(name, item && value ? { node: item, names: value.names } : null);
    });
  if (pattern?.type === 'ObjectPattern')
    for (const part of pattern.properties) {
      const name = part.type === 'Property' ? nameOf(part.value) : null;
      if (name !== null) inside.set(name, memberOf(value, name));
    }
  return inside;
}

/** The name that a part of a pattern binds, with a default value or without; null where it is a pattern itself. */
function nameOf(part: Node | null): string | null {
  if (part?.type === 'AssignmentPattern') return nameOf(part.left);
  return part?.type === 'Identifier' ? part.name : null;
}

/** The constants of the file. */
function constantsOf({ body }: Program): Names {
  const constants = new Map<string, Value | null>();
  for (const statement of body) {
    const declaration = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
    if (declaration?.type !== 'VariableDeclaration') continue;
    for (const { id, init } of declaration.declarations)
      if (id.type === 'Identifier' && init !== null) constants.set(id.name, { node: init, names: constants });
  }
  return constants;
}
