/**
 * Reads the titles of the tests in a file from its source, so that a test need not run, or be able to, for its name
 * to be known. A computed part is `…`; values from a table of the same file are filled in, row by row.
 */
import ts from 'typescript';

const COMPUTED = '…';

/** An expression with the values of its names, which the loops around it bind. */
interface Value {
  node: ts.Expression;
  names: Names;
}

/** A value is null where the source does not spell it. */
type Names = ReadonlyMap<string, Value | null>;

const NO_NAMES: Names = new Map();

/** A test within a test follows the outer title, as Node's reporter nests them: `a model works > twice`. */
export function titlesIn(path: string, source: string): Set<string> {
  if (path.endsWith('.cpp')) {
    const cases = source.matchAll(/^TEST\(\s*"((?:[^"\\]|\\.|"\s*")*)"/gm); // literals side by side are one
    return new Set([...cases].map(([, title = '']) => title.replace(/"\s*"/g, '')));
  }
  const titles = new Set<string>();
  const visit = (node: ts.Node, around: string, names: Names): void => {
    if (ts.isForOfStatement(node) && ts.isVariableDeclarationList(node.initializer)) {
      const pattern = node.initializer.declarations[0]?.name;
      for (const element of elementsOf({ node: node.expression, names }) ?? [null])
        visit(node.statement, around, bound(pattern, element, names));
      return;
    }
    let within = around;
    if (ts.isCallExpression(node) && isTest(node.expression) && node.arguments[0] !== undefined) {
      const title = textOf({ node: node.arguments[0], names });
      within = around === '' ? title : `${around} > ${title}`;
      titles.add(within);
    }
    ts.forEachChild(node, (child) => visit(child, within, names));
  };
  visit(ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true), '', NO_NAMES);
  // A title that is computed as a whole would match any name.
  titles.delete(COMPUTED);
  return titles;
}

function isTest(callee: ts.Expression): boolean {
  return ['test', 't.test'].includes(callee.getText());
}

function textOf({ node, names }: Value): string {
  const value = resolved({ node, names });
  if (value === null) return COMPUTED;
  const { node: found, names: known } = value;
  if (ts.isStringLiteralLike(found) || ts.isNumericLiteral(found)) return found.text;
  if (!ts.isTemplateExpression(found)) return COMPUTED;
  const parts = found.templateSpans.map(
    ({ expression, literal }) => textOf({ node: expression, names: known }) + literal.text,
  );
  return found.head.text + parts.join('');
}

/** Follows names, members and `??` to their values; null where the value is not in the source. */
function resolved({ node, names }: Value): Value | null {
  const inner = unwrapped(node);
  if (ts.isIdentifier(inner)) {
    const value = names.has(inner.text) ? names.get(inner.text) : constant(inner);
    return value === null || value === undefined ? null : resolved(value);
  }
  if (ts.isPropertyAccessExpression(inner))
    return memberOf(resolved({ node: inner.expression, names }), inner.name.text);
  if (ts.isBinaryExpression(inner) && inner.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken) {
    const isAbsent =
      ts.isIdentifier(inner.left) && names.get(inner.left.text)?.node.getText() === 'undefined';
    return resolved({ node: isAbsent ? inner.right : inner.left, names });
  }
  return { node: inner, names };
}

function memberOf(value: Value | null, name: string): Value | null {
  if (value === null || !ts.isObjectLiteralExpression(value.node)) return null;
  const members = value.node.properties.filter(ts.isPropertyAssignment);
  const member = members.find((one) => one.name.getText() === name);
  return member === undefined ? null : resolved({ node: member.initializer, names: value.names });
}

/**
 * Lists the elements of an array in the source, of one that a constant names, or of one that `map` makes of another.
 */
function elementsOf(value: Value): Value[] | null {
  const list = resolved(value);
  if (list === null) return null;
  const { node, names } = list;
  if (ts.isArrayLiteralExpression(node))
    return node.elements.flatMap((one) =>
      ts.isSpreadElement(one) ? (elementsOf({ node: one.expression, names }) ?? []) : [{ node: one, names }],
    );
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return null;
  const [fn] = node.arguments;
  if (node.expression.name.text !== 'map' || fn === undefined || !ts.isArrowFunction(fn)) return null;
  const { body, parameters } = fn;
  if (ts.isBlock(body)) return null;
  const from = elementsOf({ node: node.expression.expression, names });
  return from?.map((one) => ({ node: body, names: bound(parameters[0]?.name, one, names) })) ?? null;
}

/** Binds the names of a loop's pattern, for one element of its list. */
function bound(pattern: ts.BindingName | undefined, element: Value | null, names: Names): Names {
  const inside = new Map(names);
  const value = element === null ? null : resolved(element);
  if (pattern === undefined) return inside;
  if (ts.isIdentifier(pattern)) return inside.set(pattern.text, element);
  pattern.elements.forEach((part, i) => {
    if (!ts.isBindingElement(part) || !ts.isIdentifier(part.name)) return;
    const name = part.name.text;
    const item =
      value !== null && ts.isArrayLiteralExpression(value.node) ? value.node.elements[i] : undefined;
    if (ts.isObjectBindingPattern(pattern)) inside.set(name, memberOf(value, name));
    else inside.set(name, item === undefined || value === null ? null : { node: item, names: value.names });
  });
  return inside;
}

/** Finds the value of a constant of the same file. */
function constant(name: ts.Identifier): Value | null {
  for (const statement of name.getSourceFile().statements) {
    if (!ts.isVariableStatement(statement)) continue;
    for (const { name: declared, initializer } of statement.declarationList.declarations)
      if (initializer !== undefined && declared.getText() === name.text)
        return { node: initializer, names: NO_NAMES };
  }
  return null;
}

function unwrapped(node: ts.Expression): ts.Expression {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return unwrapped(node.expression);
  return node;
}
