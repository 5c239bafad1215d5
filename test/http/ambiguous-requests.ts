/**
 * Requests that two servers can understand differently, so that one sees a second request where the other sees the
 * body of the first (RFC 9112, section 11.2). Each one carries a hidden request for the reading that finds one.
 */

export interface AmbiguousRequest {
  name: string;
  /** The bytes, to be sent at once: a request for `first`, which hides one for `hidden`. */
  bytes(first: string, hidden: string): string;
  /**
   * Which of the two requests the gateway may serve: `neither` when the bytes have no clear reading, and `both` when
   * every server must find two requests in them. `hidden` is for a first request that is refused although its end is
   * clear.
   */
  serves: 'neither' | 'first' | 'hidden' | 'both';
}

type Serves = AmbiguousRequest['serves'];
/** Makes a body that holds a request for `hidden`. */
type Body = (hidden: string) => string;

const lines = (...all: string[]) => all.map((line) => `${line}\r\n`).join('');
const ask = (path: string) => lines(`GET ${path} HTTP/1.1`, 'Host: localhost', '');
const chunk = (text: string) => lines(text.length.toString(16), text);
const LAST_CHUNK = lines('0', '');
/** The whole body is `0`, and then comes the hidden request: for a reader of chunks, and of this length. */
const WHOLE = `Content-Length: ${LAST_CHUNK.length}`;
const CHUNKED = 'Transfer-Encoding: chunked';
const afterLast: Body = (hidden) => LAST_CHUNK + ask(hidden);
const inChunk: Body = (hidden) => chunk(ask(hidden)) + LAST_CHUNK;

/** A POST with these fields and this body. */
function post(name: string, fields: string[], body: Body, serves: Serves = 'neither', version = '1.1') {
  const head = (path: string) =>
    lines(`POST ${path} HTTP/${version}`, 'Host: localhost', 'Content-Type: text/plain', ...fields, '');
  return { name, serves, bytes: (first: string, hidden: string) => head(first) + body(hidden) };
}

/** A request without a body whose head is written by hand, and behind it the hidden one. */
const bare = (name: string, head: (path: string) => string, serves: Serves = 'neither') => ({
  ...{ name, serves },
  bytes: (first: string, hidden: string) => head(first) + ask(hidden),
});

const shown = (text: string) => JSON.stringify(text);

/** Only `chunked` is a coding that every server reads alike. */
const CODINGS = [
  ...['xchunked', 'chunk', 'chunkedd', 'cow', 'deflate', 'identity', ''],
  ...['chunked, chunked', 'chunked, identity', 'identity, chunked', 'gzip, chunked', 'chunked, gzip'],
  ...['chunked,', ',chunked', 'chunked;', 'chunked;q=1', '"chunked"', 'chunked chunked'],
  ...['chunked\0', 'chun\0ked', 'chunked\x0b', '\x0bchunked', '\x0cchunked', '\xa0chunked', 'chunked\x7f'],
];

/** Spellings of the name that some servers mend, some take for another field, and some skip. */
const NAMES = [
  ...['Transfer-Encoding :', 'Transfer-Encoding\t:', ' Transfer-Encoding:', '\tTransfer-Encoding:'],
  ...['Transfer-Encoding\0:', 'Transfer-Encoding\x0b:', 'Transfer-Encoding\xa0:', 'Transfer Encoding:'],
  ...['X: x\nTransfer-Encoding:', 'X: x\rTransfer-Encoding:', 'X: x\r\n Transfer-Encoding:'],
  ...['Transfer-Encoding:\r\n', 'Transfer-Encoding:\n', ':Transfer-Encoding:', '\u0000Transfer-Encoding:'],
];

const WRONG_LENGTHS = [
  ...['+5', '-5', '0x5', '5e0', '5.0', '5_0', '5 5', '"5"', '', 'five'],
  ...['5,5', '5, 5', '5, 6', '5;5', '\x0b5', '5\0', '\xa05', '\r\n 5'],
  ...['18446744073709551621', '99999999999999999999'],
];

const WRONG_SIZES = [
  ...['0x5', '+5', '-5', ' 5', '5 ', '5\t', '5_', '5.0', '5 5', '5,5', '5\0', '5\x0b', 'g', ''],
  ...['5\n5', '5\r', '5\n', '10000000000000005', 'ffffffffffffffff5'],
  ...['5;\n', '5;a\nb', '5;a="\r\n', '5;a\0', `5;${'a'.repeat(20_000)}`],
];

const AT_THE_LINE = [
  (path: string) => `GET\t${path} HTTP/1.1`,
  (path: string) => `GET ${path}\tHTTP/1.1`,
  (path: string) => `GET ${path} HTTP/1.1 `,
  (path: string) => `GET ${path} HTTP/1.1\x0b`,
  (path: string) => `GET ${path} x HTTP/1.1`,
  (path: string) => `GET ${path}\0 HTTP/1.1`,
  (path: string) => `GET ${path}\r HTTP/1.1`,
  (path: string) => `GET ${path} http/1.1`,
  (path: string) => `GET ${path} HTTP/1.2`,
  (path: string) => `GET ${path} HTTP/2.0`,
  (path: string) => `GET ${path} HTTP/0.9`,
  (path: string) => `GET ${path} ICE/1.0`,
  (path: string) => `GET ${path}`,
  (path: string) => `G\0ET ${path} HTTP/1.1`,
  (path: string) => `GET ${path} HTTP/1.1\r\n Host: localhost`,
];

const HOSTS = [
  ['two names of the server', ['localhost', 'elsewhere']],
  ['the same name twice', ['localhost', 'localhost']],
  ['a user before the name', ['localhost@elsewhere']],
  ['a password before the name', ['elsewhere:80@localhost']],
  ['two names in one field', ['localhost, elsewhere']],
  ['a path behind the name', ['localhost/x']],
  ['a space in the name', ['localhost elsewhere']],
  ['a folded name', ['localhost\r\n elsewhere']],
  ['a NUL in the name', ['localhost\0elsewhere']],
  ['no name at all', []],
] as const;

/** The end of these is clear, however odd they are. A server that reads them in another way is at fault. */
const CLEAR = [
  ...[' 5', '5 ', '\t5', '05'].map((length) =>
    post(`the length ${shown(length)}`, [`Content-Length:${length}`], afterLast, 'both'),
  ),
  ...['5', '05', '0000000005', '5;a=b', '5;a="b"', '5;a=";5"'].map((size) =>
    post(
      `the chunk size ${shown(size)}`,
      [CHUNKED],
      (hidden) => lines(size, 'hello') + afterLast(hidden),
      'both',
    ),
  ),
  post('the coding "CHUNKED"', ['Transfer-Encoding:\tCHUNKED '], afterLast, 'both'),
  post('another field with a similar name', [WHOLE, 'Transfer_Encoding: chunked'], afterLast, 'both'),
  post(
    'another field with a similar name in the place of a length',
    [CHUNKED, 'Content_Length: 99'],
    afterLast,
    'both',
  ),
  post(
    'a length that Connection names',
    [WHOLE, 'Connection: keep-alive, Content-Length'],
    afterLast,
    'both',
  ),
  post(
    'chunks that Connection names',
    [CHUNKED, 'Connection: keep-alive, Transfer-Encoding'],
    afterLast,
    'both',
  ),
  post(
    'a hidden request in a body with a length',
    ['Content-Length: 60'],
    (hidden) => ask(hidden).padEnd(60),
    'first',
  ),
  post('a hidden request in a chunk', [CHUNKED], inChunk, 'first'),
  post(
    'a trailer with a Host',
    [CHUNKED],
    (hidden) => lines('0', 'Host: elsewhere', '') + ask(hidden),
    'both',
  ),
  // The wish is ignored, and what comes after the body is the next request.
  post(
    'a wish for HTTP/2',
    [WHOLE, 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk', 'Connection: keep-alive, Upgrade, HTTP2-Settings'],
    afterLast,
    'both',
  ),
  post(
    'a wish for a WebSocket',
    [
      WHOLE,
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
    ],
    afterLast,
    'both',
  ),
  post('a wish to be told to go on', [WHOLE, 'Expect: 100-continue'], afterLast, 'both'),
  ...['GET', 'DELETE'].map((method) => ({
    ...post(`${method} with a body`, [WHOLE], afterLast, 'both'),
    bytes: (first: string, hidden: string) =>
      lines(`${method} ${first} HTTP/1.1`, 'Host: localhost', WHOLE, '') + afterLast(hidden),
  })),
  bare('an empty line before the request', (path) => `\r\n${ask(path)}`, 'both'),
  bare(
    'two spaces after the method',
    (path) => lines(`GET  ${path} HTTP/1.1`, 'Host: localhost', ''),
    'both',
  ),
  bare(
    'an absolute target',
    (path) => lines(`GET http://localhost${path} HTTP/1.1`, 'Host: localhost', ''),
    'both',
  ),
  bare('a tunnel', () => lines('CONNECT localhost:80 HTTP/1.1', 'Host: localhost:80', '')),
  bare('another protocol', (path) => lines(`GET ${path} RTSP/1.0`, 'Host: localhost', ''), 'first'),
];

export const AMBIGUOUS: readonly AmbiguousRequest[] = [
  post('a length, then chunks, and the length ends first', ['Content-Length: 4', CHUNKED], inChunk),
  post('chunks, then a length, and the length ends first', [CHUNKED, 'Content-Length: 4'], inChunk),
  post('a length and chunks, and the chunks end first', ['Content-Length: 999', CHUNKED], afterLast),
  post('a length and chunks that agree', [WHOLE, CHUNKED], afterLast),
  post('a length of 0 and chunks', ['Content-Length: 0', CHUNKED], inChunk),
  post('chunks in HTTP/1.0', [CHUNKED], afterLast, 'neither', '1.0'),
  post(
    'chunks in HTTP/1.0, to be kept alive',
    [CHUNKED, 'Connection: keep-alive'],
    afterLast,
    'neither',
    '1.0',
  ),
  post('a length and chunks in HTTP/1.0', [WHOLE, CHUNKED], afterLast, 'neither', '1.0'),
  ...CODINGS.flatMap((coding) => [
    post(`the coding ${shown(coding)}`, [`Transfer-Encoding: ${coding}`], afterLast),
    post(`the coding ${shown(coding)} and a length`, [WHOLE, `Transfer-Encoding: ${coding}`], afterLast),
  ]),
  post('two codings in two fields', [CHUNKED, 'Transfer-Encoding: identity'], afterLast),
  post('the same coding in two fields', [CHUNKED, CHUNKED], afterLast),
  post('a coding before chunks in two fields', ['Transfer-Encoding: gzip', CHUNKED], afterLast),
  ...NAMES.map((name) =>
    post(`the field ${shown(name)} and a length`, [WHOLE, `${name} chunked`], afterLast),
  ),
  ...WRONG_LENGTHS.map((length) =>
    post(`the length ${shown(length)}`, [`Content-Length:${length}`], afterLast),
  ),
  post('two lengths, and the first ends first', ['Content-Length: 5', 'Content-Length: 99'], afterLast),
  post('two lengths, and the second ends first', ['Content-Length: 99', 'Content-Length: 5'], afterLast),
  post('the same length twice', [WHOLE, WHOLE], afterLast),
  post('a length in HTTP/1.0', [WHOLE], afterLast, 'first', '1.0'),
  post('no length at all', [], afterLast, 'first'),
  ...WRONG_SIZES.map((size) =>
    post(
      `the chunk size ${shown(size).slice(0, 30)}`,
      [CHUNKED],
      (hidden) => lines(size, 'hello') + afterLast(hidden),
    ),
  ),
  post(
    'a chunk that is longer than its size',
    [CHUNKED],
    (hidden) => lines('4', 'hello') + afterLast(hidden),
  ),
  post('a chunk that ends with a bare LF', [CHUNKED], (hidden) => `5\r\nhello\n${afterLast(hidden)}`),
  post('a last chunk that ends with a bare LF', [CHUNKED], (hidden) => `0\r\n\n${ask(hidden)}`),
  post('a last chunk without its empty line', [CHUNKED], (hidden) => `0\r\n${ask(hidden)}`),
  post('a request as a trailer', [CHUNKED], (hidden) =>
    lines('0', `GET ${hidden} HTTP/1.1`, 'Host: localhost', ''),
  ),
  post('a trailer that folds', [CHUNKED], (hidden) => lines('0', 'X: x', ' y', '') + ask(hidden)),
  post(
    'a trailer with a bare CR',
    [CHUNKED],
    (hidden) => lines('0', `X: x\rContent-Length: 5`, '') + ask(hidden),
  ),
  ...AT_THE_LINE.map((line, i) =>
    bare(`the request line ${shown(line('/x'))}`, (path) =>
      lines(line(path), ...(i < 14 ? ['Host: localhost'] : []), ''),
    ),
  ),
  bare('a request line of HTTP/0.9', (path) => `GET ${path}\r\n`),
  bare('the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  bare('bare LFs everywhere', (path) => `GET ${path} HTTP/1.1\nHost: localhost\n\n`),
  bare('a bare LF after the request line', (path) => `GET ${path} HTTP/1.1\nHost: localhost\r\n\r\n`),
  bare('a bare LF after a field', (path) => `GET ${path} HTTP/1.1\r\nHost: localhost\nX: x\r\n\r\n`),
  bare('a bare LF for the empty line', (path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\n`),
  bare('bare CRs everywhere', (path) => `GET ${path} HTTP/1.1\rHost: localhost\r\r`),
  bare('a bare CR in a value', (path) => lines(`GET ${path} HTTP/1.1`, 'Host: localhost', 'X: x\ry', '')),
  bare('a bare CR for the empty line', (path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\r`),
  bare('a value that folds', (path) => lines(`GET ${path} HTTP/1.1`, 'Host: localhost', 'X: x', ' y', '')),
  bare('a NUL in a value', (path) => lines(`GET ${path} HTTP/1.1`, 'Host: localhost', 'X: x\0y', '')),
  bare('a NUL in a name', (path) => lines(`GET ${path} HTTP/1.1`, 'Host: localhost', 'X\0: x', '')),
  bare('a field without a colon', (path) => lines(`GET ${path} HTTP/1.1`, 'Host: localhost', 'X', '')),
  ...HOSTS.map(([name, hosts]) =>
    bare(
      `Host: ${name}`,
      (path) => lines(`GET ${path} HTTP/1.1`, ...hosts.map((host) => `Host: ${host}`), ''),
      name.startsWith('a folded') || name.startsWith('a NUL') ? 'neither' : 'hidden',
    ),
  ),
  bare(
    'an absolute target of another host',
    (path) => lines(`GET http://elsewhere${path} HTTP/1.1`, 'Host: localhost', ''),
    'hidden',
  ),
  bare(
    'an absolute target with a user',
    (path) => lines(`GET http://localhost@elsewhere${path} HTTP/1.1`, 'Host: localhost', ''),
    'hidden',
  ),
  post('a trailer with a length', [CHUNKED], (hidden) => lines('0', 'Content-Length: 99', '') + ask(hidden)),
  post(
    'a trailer with a coding',
    [CHUNKED],
    (hidden) => lines('0', 'Transfer-Encoding: gzip', '') + ask(hidden),
  ),
  post('another wish', [WHOLE, 'Expect: 200-ok'], afterLast),
  ...CLEAR,
];
