/** Base URLs of a gateway, as a client writes them. */

/** @param host a name or an address; an IPv6 address gets its brackets */
export function baseUrl(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}
