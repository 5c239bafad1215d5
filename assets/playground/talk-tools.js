/** The functions that a model may call while it talks to a visitor of the page. */

const MAX_DICE = 100;
const MAX_SIDES = 1000;

const whole = (value, fallback, most) => {
  const number = Math.trunc(Number(value ?? fallback));
  return number >= 1 && number <= most ? number : fallback;
};

/** By name: what the model is told of it, and what it does. */
const TOOLS = {
  current_time: {
    description: 'The date and time where the user is.',
    parameters: { type: 'object', properties: {} },
    run: () => ({
      time: new Date().toLocaleString('en', { dateStyle: 'full', timeStyle: 'long' }),
      timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    }),
  },
  roll_dice: {
    description: 'Rolls dice and returns what each of them shows.',
    parameters: {
      type: 'object',
      properties: {
        count: { type: 'integer', description: `1 to ${MAX_DICE}, 1 if it is not given` },
        sides: { type: 'integer', description: `2 to ${MAX_SIDES}, 6 if it is not given` },
      },
    },
    run({ count, sides }) {
      const faces = whole(sides, 6, MAX_SIDES);
      return {
        rolls: Array.from({ length: whole(count, 1, MAX_DICE) }, () => 1 + Math.floor(Math.random() * faces)),
      };
    },
  },
};

/** @returns the tools as a session takes them */
export const describeTools = () =>
  Object.entries(TOOLS).map(([name, { description, parameters }]) => ({
    type: 'function',
    name,
    description,
    parameters,
  }));

/** @returns what the model reads; a call of what is not there, or with broken arguments, is told so */
export function runTool(name, argumentsAsJson) {
  try {
    if (!Object.hasOwn(TOOLS, name)) throw new Error(`there is no function ${name}`);
    return JSON.stringify(TOOLS[name].run(Object(JSON.parse(argumentsAsJson))));
  } catch ({ message }) {
    return JSON.stringify({ error: message });
  }
}
