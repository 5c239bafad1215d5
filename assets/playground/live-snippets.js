/** The code of the live tab. curl sends no sound over a WebSocket, so the gateway's own command stands in its place. */
import { literal, nodeSocket, pythonSession, shell } from './snippet-parts.js';

/** Each function is given {base, withKey, model, language}. */
export const LIVE = { curl: command, python, node };

const RATE = 24_000;
const COMPLETED = 'conversation.item.input_audio_transcription.completed';
const SAMPLES = 'ffmpeg -i speech.mp3 -f s16le -ac 1 -ar 24000 speech.pcm';

const transcriptionOf = ({ model, language }) => (language === '' ? { model } : { model, language });

function sessionOf(choices) {
  const format = { type: 'audio/pcm', rate: RATE };
  const input = { format, transcription: transcriptionOf(choices) };
  return { type: 'transcription', audio: { input } };
}

function command({ base, withKey, model, language }) {
  return [
    '# curl cannot send live audio, so this is the gateway’s own command.',
    '# Without a file it uses the microphone.',
    ...(withKey ? [`# The key is read from SVC_API_KEY.`] : []),
    [
      `npx voxgate live --url ${shell(base)}`,
      ...(model === 'auto' ? [] : [`--model ${shell(model)}`]),
      ...(language === '' ? [] : [`--language ${shell(language)}`]),
      'speech.mp3',
    ].join(' '),
  ].join('\n');
}

function python({ base, withKey, ...choices }) {
  return pythonSession(
    { base, withKey },
    {
      comments: [SAMPLES],
      connect: 'extra_query={"intent": "transcription"}',
      settings: sessionOf(choices),
      samples: 'speech.pcm',
      pauseBytes: '96_000',
      reading: [
        'async for event in connection:',
        `    if event.type == "${COMPLETED}":`,
        '        print(event.transcript, flush=True)',
        '    elif event.type == "error":',
        '        raise SystemExit(event.error.message)',
      ],
    },
  );
}

function node({ base, withKey, ...choices }) {
  return [
    '// npm install ws. OpenAIRealtimeWS of the openai package does the same, but only over https.',
    `// ${SAMPLES}`,
    'import { readFile } from "node:fs/promises";',
    ...nodeSocket({ base, withKey }, 'intent=transcription'),
    'socket.on("open", async () => {',
    `  send({ type: "session.update", session: ${literal(sessionOf(choices))} });`,
    '  const sound = await readFile("speech.pcm");',
    '  for (let at = 0; at < sound.length; at += 48_000) append(sound.subarray(at, at + 48_000)); // seconds',
    '  append(Buffer.alloc(96_000)); // the pause that ends what was said',
    '});',
    'socket.on("message", (data) => {',
    '  const event = JSON.parse(data);',
    `  if (event.type === "${COMPLETED}") console.log(event.transcript);`,
    '  if (event.type === "error") throw new Error(event.error.message);',
    '});',
    '',
  ].join('\n');
}
