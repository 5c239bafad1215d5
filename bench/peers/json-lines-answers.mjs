/**
 * This is the answering side of json-lines.ts: it says that it is ready, then answers line after line until stdin
 * ends.
 */
import { createInterface } from 'node:readline';

export async function answerLines(answer) {
  const write = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
  write({});
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      write(await answer(JSON.parse(line)));
    } catch (error) {
      write({ error: String(error) });
    }
  }
}
