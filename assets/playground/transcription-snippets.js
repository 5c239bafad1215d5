/** The code of the transcription tab. */
import { curlKey, literal, nodeClient, pythonClient, shell } from './snippet-parts.js';

/** These fields are no parameters of the SDKs. */
const OURS = new Set(['translate', 'segment_granularity', 'diarize']);

/** Each function is given {base, withKey, fileName, fields}. */
export const TRANSCRIPTION = { curl, python, node };

function curl({ base, withKey, fileName, fields }) {
  const file = `file=@"${fileName.replace(/[\\"]/g, '\\$&')}"`;
  const streams = fields.some(([name]) => name === 'stream');
  const lines = [`curl ${streams ? '-N ' : ''}${shell(`${base}/v1/audio/transcriptions`)}`];
  lines.push(...curlKey(withKey), `-F ${shell(file)}`);
  // --form-string is used because curl gives `@`, `<` and `;` in an -F value a meaning of their own.
  for (const [name, value] of fields) {
    lines.push(`${name === 'prompt' ? '--form-string' : '-F'} ${shell(`${name}=${value}`)}`);
  }
  return lines.join(' \\\n  ');
}

function python({ fileName, fields, ...gateway }) {
  const { own, extra, streams } = forSdk(fields);
  const args = [`file=open(${JSON.stringify(fileName)}, "rb")`];
  for (const [name, v] of Object.entries(own)) args.push(`${name}=${v === true ? 'True' : literal(v)}`);
  const pairs = Object.entries(extra).map(([name, v]) => `${JSON.stringify(name)}: ${JSON.stringify(v)}`);
  if (pairs.length > 0) args.push(`extra_body={${pairs.join(', ')}}`);
  return [
    ...pythonClient(gateway),
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

function node({ fileName, fields, ...gateway }) {
  const { own, extra, streams } = forSdk(fields);
  const args = [`file: fs.createReadStream(${JSON.stringify(fileName)})`];
  for (const [name, v] of Object.entries({ ...own, ...extra })) args.push(`${name}: ${literal(v)}`);
  return [
    ...nodeClient(gateway, ['import fs from "node:fs";']),
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
