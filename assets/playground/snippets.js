/** Shows the current choices as code that sends the very request this page would send. */

/** These fields are no parameters of the SDKs. */
const OURS = new Set(['translate', 'segment_granularity', 'diarize']);

/** Each function is given {base, fileName, fields, withKey}. */
export const SNIPPETS = { curl, python, node };

function curl({ base, fileName, fields, withKey }) {
  const file = `file=@"${fileName.replace(/[\\"]/g, '\\$&')}"`;
  const streams = fields.some(([name]) => name === 'stream');
  const lines = [`curl ${streams ? '-N ' : ''}${shell(`${base}/v1/audio/transcriptions`)}`];
  if (withKey) lines.push('-H "Authorization: Bearer $VOXGATE_API_KEY"');
  lines.push(`-F ${shell(file)}`);
  // --form-string is used because curl gives `@`, `<` and `;` in an -F value a meaning of their own.
  for (const [name, value] of fields) {
    lines.push(`${name === 'prompt' ? '--form-string' : '-F'} ${shell(`${name}=${value}`)}`);
  }
  return lines.join(' \\\n  ');
}

function python({ base, fileName, fields, withKey }) {
  const { own, extra, streams } = forSdk(fields);
  const args = [`file=open(${JSON.stringify(fileName)}, "rb")`];
  for (const [name, v] of Object.entries(own)) args.push(`${name}=${v === true ? 'True' : literal(v)}`);
  const pairs = Object.entries(extra).map(([name, v]) => `${JSON.stringify(name)}: ${JSON.stringify(v)}`);
  if (pairs.length > 0) args.push(`extra_body={${pairs.join(', ')}}`);
  const key = withKey ? 'os.environ["VOXGATE_API_KEY"]' : '"none"';
  return [
    ...(withKey ? ['import os', ''] : []),
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${JSON.stringify(`${base}/v1`)}, api_key=${key})`,
    `${streams ? 'stream' : 'result'} = client.audio.transcriptions.create(`,
    ...args.map((arg) => `    ${arg},`),
    ')',
    ...(streams
      ? [
          'for event in stream:',
          ...(extra.diarize
            ? [
                '    if event.type == "transcript.text.segment":',
                '        print(f"{event.speaker}: {event.text}", flush=True)',
              ]
            : [
                '    if event.type == "transcript.text.delta":',
                '        print(event.delta, end="", flush=True)',
                'print()',
              ]),
        ]
      : [
          'for word in result.words:',
          `    print(f"{word.start:8.2f} {word.end:8.2f}  ${extra.diarize ? '{word.speaker}: ' : ''}{word.word}")`,
        ]),
    '',
  ].join('\n');
}

function node({ base, fileName, fields, withKey }) {
  const { own, extra, streams } = forSdk(fields);
  const args = [`file: fs.createReadStream(${JSON.stringify(fileName)})`];
  for (const [name, v] of Object.entries({ ...own, ...extra })) args.push(`${name}: ${literal(v)}`);
  const key = withKey ? 'process.env.VOXGATE_API_KEY' : '"none"';
  return [
    'import fs from "node:fs";',
    'import OpenAI from "openai";',
    '',
    `const client = new OpenAI({ baseURL: ${JSON.stringify(`${base}/v1`)}, apiKey: ${key} });`,
    `const ${streams ? 'stream' : 'result'} = await client.audio.transcriptions.create({`,
    ...args.map((arg) => `  ${arg},`),
    '});',
    ...(streams
      ? [
          'for await (const event of stream) {',
          ...(extra.diarize
            ? ['  if (event.type === "transcript.text.segment") console.log(event.speaker, event.text);', '}']
            : [
                '  if (event.type === "transcript.text.delta") process.stdout.write(event.delta);',
                '}',
                'console.log();',
              ]),
        ]
      : extra.diarize
        ? [
            'for (const { start, end, speaker, word } of result.words) console.log(start, end, speaker, word);',
          ]
        : ['for (const { start, end, word } of result.words) console.log(start, end, word);']),
    '',
  ].join('\n');
}

function forSdk(fields) {
  const own = {};
  const extra = {};
  for (const [name, value] of fields) {
    if (name.endsWith('[]')) {
      const list = name.slice(0, -2);
      own[list] = [...(own[list] ?? []), value];
    } else if (OURS.has(name)) extra[name] = value;
    else own[name] = name === 'stream' ? true : value;
  }
  return { own, extra, streams: own.stream === true };
}

/** Quotes a text in a way that both languages read alike. */
function literal(value) {
  return Array.isArray(value) ? `[${value.map(literal).join(', ')}]` : JSON.stringify(value);
}

/** Quotes a text as one word of a POSIX shell. */
function shell(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
