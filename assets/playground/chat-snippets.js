/** The code of the chat tab. */
import { curlJson, literal, nodeClient, pythonClient } from './snippet-parts.js';

/** Each function is given {base, withKey, model, content}. */
export const CHAT = { curl, python, node };

function curl({ model, content, ...gateway }) {
  const body = { model, messages: [{ role: 'user', content }], stream: true };
  return curlJson(gateway, '/v1/chat/completions', body);
}

function python({ model, content, ...gateway }) {
  return [
    ...pythonClient(gateway),
    'stream = client.chat.completions.create(',
    `    model=${literal(model)},`,
    `    messages=[{"role": "user", "content": ${literal(content)}}],`,
    '    stream=True,',
    ')',
    'for chunk in stream:',
    '    if chunk.choices:',
    '        print(chunk.choices[0].delta.content or "", end="", flush=True)',
    'print()',
    '',
  ].join('\n');
}

function node({ model, content, ...gateway }) {
  return [
    ...nodeClient(gateway),
    'const stream = await client.chat.completions.create({',
    `  model: ${literal(model)},`,
    `  messages: [{ role: "user", content: ${literal(content)} }],`,
    '  stream: true,',
    '});',
    'for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");',
    'console.log();',
    '',
  ].join('\n');
}
