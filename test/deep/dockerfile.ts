/** Reads the instructions of a Dockerfile, as far as those of this repository use them. */

export interface Instruction {
  name: string;
  value: string;
}

/** Continued lines are joined, and comments are left out. */
function instructionsOf(dockerfile: string): Instruction[] {
  const joined = dockerfile.replaceAll(/^#.*\n/gm, '').replaceAll(/\\\n\s*/g, '');
  return joined
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', value = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
      return { name, value };
    });
}

/** Splits the file at its FROM lines. */
export function stagesOf(dockerfile: string): Instruction[][] {
  const stages: Instruction[][] = [];
  for (const instruction of instructionsOf(dockerfile)) {
    if (instruction.name === 'FROM') stages.push([]);
    stages.at(-1)?.push(instruction);
  }
  return stages;
}

/** `A=1 B=2` as an object; no value of ours has spaces. */
export function pairsOf(value: string): Record<string, string> {
  return Object.fromEntries(value.split(/\s+/).map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
}

/** The arguments of the exec form, which may have options before them. */
export function execFormOf(value: string): string[] {
  return JSON.parse(value.slice(value.indexOf('[')));
}
