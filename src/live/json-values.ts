/** The number of values in a JSON text, a measure of the cost to parse it. */

const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/** Commas and opening brackets tell how many values there are, those within texts too, before anything is parsed. */
export function hasMoreValues(json: Buffer, most: number): boolean {
  let count = 0;
  for (let at = 0; at < json.length && count <= most; at += 1) {
    const byte = json[at];
    if (byte === COMMA || byte === BRACKET || byte === BRACE) count += 1;
  }
  return count > most;
}
