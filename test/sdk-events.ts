/** The names of the events that the installed package of OpenAI knows, read from its types. */
import { readFileSync } from 'node:fs';

const types = readFileSync('node_modules/openai/resources/realtime/realtime.d.ts', 'utf8');

/** The `type` of each member of a union of events. */
export function namesOf(union: 'RealtimeClientEvent' | 'RealtimeServerEvent'): string[] {
  const head = `export type ${union} = `;
  const at = types.indexOf(head) + head.length;
  const members = types.slice(at, types.indexOf(';', at)).split(' | ');
  return members.map((member) => {
    const name = member.split('.').at(-1) ?? member;
    const begin = types.indexOf(`interface ${name} {`);
    // Members of a nested object are further in than those of the event.
    const found = /^( {4}| {8})type: '([^']+)'/m.exec(types.slice(begin));
    if (begin < 0 || !found?.[2]) throw new Error(`${member} has no type`);
    return found[2];
  });
}
