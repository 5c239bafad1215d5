/** What the snippets of all tabs have in common. A key never stands in them, only the variable that holds one. */

const VARIABLE = 'VOXGATE_API_KEY';

/** Quotes a text in a way that both languages read alike. */
export function literal(value) {
  return Array.isArray(value) ? `[${value.map(literal).join(', ')}]` : JSON.stringify(value);
}

/** Quotes a text as one word of a POSIX shell. */
export function shell(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export const curlKey = (withKey) => (withKey ? [`-H "Authorization: Bearer $${VARIABLE}"`] : []);

/** A request with a body of JSON. */
export function curlJson({ base, withKey }, path, body, ...more) {
  return [
    `curl -N ${shell(base + path)}`,
    ...curlKey(withKey),
    "-H 'Content-Type: application/json'",
    `-d ${shell(JSON.stringify(body))}`,
    ...more,
  ].join(' \\\n  ');
}

/** The first lines of a program with the OpenAI package of PyPI. */
export function pythonClient({ base, withKey }, { name = 'OpenAI', imports = [] } = {}) {
  const modules = [...imports, ...(withKey ? ['os'] : [])].sort();
  const key = withKey ? `os.environ["${VARIABLE}"]` : '"none"';
  return [
    ...modules.map((module) => `import ${module}`),
    ...(modules.length > 0 ? [''] : []),
    `from openai import ${name}`,
    '',
    `client = ${name}(base_url=${JSON.stringify(`${base}/v1`)}, api_key=${key})`,
  ];
}

/**
 * A program with the OpenAI package of PyPI that sends a file of samples into a live session.
 * @param session.comments what must be done before, and after
 * @param session.connect the arguments of the connection
 * @param session.settings those of the session
 * @param session.samples the name of the file, 24 kHz mono in 16 bits
 * @param session.pauseBytes the silence after it, which ends what was said
 * @param session.reading the lines that read the events
 */
export function pythonSession(gateway, { comments, connect, settings, samples, pauseBytes, reading }) {
  return [
    '# pip install "openai[realtime]"',
    ...comments.map((comment) => `# ${comment}`),
    ...pythonClient(gateway, { name: 'AsyncOpenAI', imports: ['asyncio', 'base64'] }),
    '',
    '',
    'async def main():',
    `    async with client.realtime.connect(${connect}) as connection:`,
    `        await connection.session.update(session=${literal(settings)})`,
    `        with open("${samples}", "rb") as file:`,
    '            while piece := file.read(48_000):  # a second',
    '                await connection.input_audio_buffer.append(audio=base64.b64encode(piece).decode())',
    `        await connection.input_audio_buffer.append(audio=base64.b64encode(bytes(${pauseBytes})).decode())`,
    ...reading.map((line) => `        ${line}`),
    '',
    '',
    'asyncio.run(main())',
    '',
  ].join('\n');
}

/** The first lines of a program with the OpenAI package of npm. */
export function nodeClient({ base, withKey }, imports = []) {
  const key = withKey ? `process.env.${VARIABLE}` : '"none"';
  return [
    ...imports,
    'import OpenAI from "openai";',
    '',
    `const client = new OpenAI({ baseURL: ${JSON.stringify(`${base}/v1`)}, apiKey: ${key} });`,
  ];
}

/** The first lines, behind the imports, of a program for Node that holds a live session. @param query of its address */
export function nodeSocket({ base, withKey }, query) {
  const url = `${base.replace(/^http/, 'ws')}/v1/realtime?${query}`;
  const options = withKey ? `, { headers: { Authorization: \`Bearer \${process.env.${VARIABLE}}\` } }` : '';
  return [
    'import WebSocket from "ws";',
    '',
    `const socket = new WebSocket(${literal(url)}${options});`,
    'const send = (event) => socket.send(JSON.stringify(event));',
    'const append = (bytes) => send({ type: "input_audio_buffer.append", audio: bytes.toString("base64") });',
  ];
}
