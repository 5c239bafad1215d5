/** The talk of openai_conversation.py with the OpenAI package of npm. Arguments: base address with /v1, key, samples. */
import { readFileSync } from 'node:fs';
import { openaiRealtime } from './openai-realtime.ts';

const [base = '', key = '', path = ''] = process.argv.slice(2);
const utterance = readFileSync(path).toString('base64');
const seen = { answers: [] as string[], tools: [] as string[][], statuses: [] as string[], bytes: 0 };
const realtime = openaiRealtime(new URL(base).origin, key);
let turns = 0;

function say(): void {
  turns += 1;
  realtime.send({ type: 'input_audio_buffer.append', audio: utterance });
}

realtime.on('error', (error) => {
  throw error;
});
realtime.once('session.created', () =>
  realtime.send({
    type: 'session.update',
    session: {
      type: 'realtime',
      tools: [
        {
          type: 'function',
          name: 'clock',
          description: 'The time of day.',
          parameters: {
            type: 'object',
            properties: { zone: { type: 'string', enum: ['UTC', 'CET'] } },
            required: ['zone'],
          },
        },
      ],
      audio: { input: { transcription: { model: 'whisper-1' }, turn_detection: { type: 'server_vad' } } },
    },
  }),
);
realtime.once('session.updated', say);
realtime.on('response.output_audio.delta', ({ delta }) => {
  seen.bytes += Buffer.from(delta, 'base64').length;
  if (turns === 2) say(); // over the story
});
realtime.on('response.output_audio_transcript.done', ({ transcript }) => void seen.answers.push(transcript));
realtime.on('response.function_call_arguments.done', ({ call_id, name, arguments: json }) => {
  seen.tools.push([name, JSON.parse(json).zone]);
  realtime.send({
    type: 'conversation.item.create',
    item: { type: 'function_call_output', call_id, output: 'noon' },
  });
});
realtime.on('response.done', ({ response }) => {
  seen.statuses.push(response.status ?? '');
  if (response.output?.[0]?.type === 'function_call') realtime.send({ type: 'response.create' });
  else if (turns === 1) say();
  else if (seen.statuses.length === 4) realtime.close();
});
realtime.socket.on('close', () => process.stdout.write(`${JSON.stringify(seen)}\n`));
