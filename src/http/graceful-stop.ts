/**
 * Ends a server: answers under way get a moment to be read, connections without a request do not hold it up.
 * Node's own `closeIdleConnections` spares one that never sent a request, and one that fell idle a moment ago.
 */
import type { Server } from 'node:http';

/** How long clients may take to read what is on its way to them. */
const LAST_ANSWERS_MS = 5000;
/** For a refused client that is still writing: time to read why. */
const LAST_WORDS_MS = 300;
const LOOK_EVERY_MS = 20;

/** @param inFlight requests whose last byte is not out yet */
export async function stopServer(server: Server, inFlight: () => number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  let quietMs = 0;
  const look = setInterval(() => {
    server.closeIdleConnections();
    quietMs = inFlight() > 0 ? 0 : quietMs + LOOK_EVERY_MS;
    if (quietMs >= LAST_WORDS_MS) server.closeAllConnections();
  }, LOOK_EVERY_MS);
  const late = setTimeout(() => server.closeAllConnections(), LAST_ANSWERS_MS);
  await closed;
  clearInterval(look);
  clearTimeout(late);
}
