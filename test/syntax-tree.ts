/** The syntax tree of TypeScript, as ESTree describes it (https://github.com/estree/estree). */
import { type Node, type Program, parseSync, visitorKeys } from 'oxc-parser';

/** @throws Error where the text is no TypeScript */
export function parsed(path: string, text: string): Program {
  const { program, errors } = parseSync(path, text, { preserveParens: false });
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`);
  return program;
}

/** The nodes directly below a node, in the order of the text. */
export function childrenOf(node: Node): Node[] {
  const members = node as unknown as Record<string, Node | (Node | null)[] | null>;
  return (visitorKeys[node.type] ?? [])
    .flatMap((key) => members[key] ?? [])
    .filter((child) => child !== null);
}

/** The node and all that is below it, in the order of the text. */
export function nodesOf(node: Node): Node[] {
  const found: Node[] = [];
  const visit = (each: Node) => {
    found.push(each);
    for (const child of childrenOf(each)) visit(child);
  };
  visit(node);
  return found;
}
