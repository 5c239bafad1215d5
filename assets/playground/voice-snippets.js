/** The code of the voice tab. curl holds no conversation over a WebSocket, so it takes the same three steps one by one. */
import { curlKey, literal, nodeSocket, pythonSession, shell } from './snippet-parts.js';

/** Each function is given {base, withKey, model, voice, instructions}. */
export const VOICE = { curl: steps, python, node };

const RATE = 24_000;
const COMPLETED = 'conversation.item.input_audio_transcription.completed';
const SAMPLES = 'ffmpeg -i question.mp3 -f s16le -ac 1 -ar 24000 question.pcm';
const PLAY = 'ffplay -f s16le -ar 24000 answer.pcm';

function sessionOf({ model, voice, instructions }) {
  const format = { type: 'audio/pcm', rate: RATE };
  return {
    type: 'realtime',
    model,
    instructions,
    audio: {
      input: { format, transcription: { model: 'auto' } },
      output: { format, ...(voice !== '' && { voice }) },
    },
  };
}

function steps({ base, withKey, model, voice, instructions }) {
  const post = (path) => ['curl -sf', shell(`${base}/v1${path}`), ...curlKey(withKey)].join(' ');
  const asJson = `-H 'Content-Type: application/json' -d @-`;
  return [
    '# curl cannot hold a conversation, so these are its steps: transcription, chat and speech. They need jq.',
    `said=$(${post('/audio/transcriptions')} \\`,
    '  -F file=@question.mp3 -F model=auto -F response_format=text)',
    'echo "$said"',
    'answer=$(jq -n --arg said "$said" \\',
    `  --arg instructions ${shell(instructions)} \\`,
    `  '{model: ${literal(model).replaceAll("'", "'\\''")}, messages: [{role: "system", content: $instructions}, {role: "user", content: $said}]}' |`,
    `  ${post('/chat/completions')} ${asJson} |`,
    '  jq -r ".choices[0].message.content")',
    'echo "$answer"',
    'jq -n --arg answer "$answer" \\',
    `  '{model: "tts", voice: ${literal(voice).replaceAll("'", "'\\''")}, input: $answer, response_format: "wav"}' |`,
    `  ${post('/audio/speech')} ${asJson} -o answer.wav`,
    '',
  ].join('\n');
}

function python({ base, withKey, ...choices }) {
  return pythonSession(
    { base, withKey },
    {
      comments: [SAMPLES, PLAY],
      connect: `model=${literal(choices.model)}`,
      settings: sessionOf(choices),
      samples: 'question.pcm',
      pauseBytes: '48_000',
      reading: [
        'with open("answer.pcm", "wb") as sound:',
        '    async for event in connection:',
        `        if event.type == "${COMPLETED}":`,
        '            print(event.transcript, flush=True)',
        '        elif event.type == "response.output_audio_transcript.delta":',
        '            print(event.delta, end="", flush=True)',
        '        elif event.type == "response.output_audio.delta":',
        '            sound.write(base64.b64decode(event.delta))',
        '        elif event.type == "response.done":',
        '            break',
        '        elif event.type == "error":',
        '            raise SystemExit(event.error.message)',
      ],
    },
  );
}

function node({ base, withKey, ...choices }) {
  return [
    '// npm install ws. OpenAIRealtimeWS of the openai package does the same, but only over https.',
    `// ${SAMPLES}`,
    `// ${PLAY}`,
    'import { appendFileSync, readFileSync } from "node:fs";',
    ...nodeSocket({ base, withKey }, `model=${encodeURIComponent(choices.model)}`),
    'socket.on("open", () => {',
    `  send({ type: "session.update", session: ${literal(sessionOf(choices))} });`,
    '  const sound = readFileSync("question.pcm");',
    '  for (let at = 0; at < sound.length; at += 48_000) append(sound.subarray(at, at + 48_000)); // seconds',
    '  append(Buffer.alloc(48_000)); // the pause that ends what was said',
    '});',
    'socket.on("message", (data) => {',
    '  const event = JSON.parse(data);',
    `  if (event.type === "${COMPLETED}") console.log(event.transcript);`,
    '  if (event.type === "response.output_audio_transcript.delta") process.stdout.write(event.delta);',
    '  if (event.type === "response.output_audio.delta") appendFileSync("answer.pcm", event.delta, "base64");',
    '  if (event.type === "response.done") socket.close();',
    '  if (event.type === "error") throw new Error(event.error.message);',
    '});',
    '',
  ].join('\n');
}
