/** The code of the speech tab. */
import { curlJson, literal, nodeClient, pythonClient, shell } from './snippet-parts.js';

/** Each function is given {base, withKey, request, fileName}. */
export const SPEECH = { curl, python, node };

function curl({ request, fileName, ...gateway }) {
  return curlJson(gateway, '/v1/audio/speech', request, `-o ${shell(fileName)}`);
}

function python({ request, fileName, ...gateway }) {
  return [
    ...pythonClient(gateway),
    'with client.audio.speech.with_streaming_response.create(',
    ...Object.entries(request).map(([name, value]) => `    ${name}=${literal(value)},`),
    ') as response:',
    `    response.stream_to_file(${literal(fileName)})`,
    '',
  ].join('\n');
}

function node({ request, fileName, ...gateway }) {
  return [
    ...nodeClient(gateway, ['import { writeFile } from "node:fs/promises";']),
    'const response = await client.audio.speech.create({',
    ...Object.entries(request).map(([name, value]) => `  ${name}: ${literal(value)},`),
    '});',
    `await writeFile(${literal(fileName)}, response.body);`,
    '',
  ].join('\n');
}
