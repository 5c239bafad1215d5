/**
 * Stops a server. Clients get a moment to read the answers under way, and connections without a request are closed
 * soon. Node's own `closeIdleConnections` leaves open a connection that never sent a request, and one that has just
 * become idle.
 */
import type { Server } from 'node:http';

/** The time that clients have to read the answers under way. */
const LAST_ANSWERS_MS = 5000;
/** The time that a refused client which is still sending has to read the reason. */
const LAST_WORDS_MS = 300;
const LOOK_EVERY_MS = 20;

/**
 * Resolves when every connection is closed.
 * @param inFlight counts the requests whose response has not ended yet
 */
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
