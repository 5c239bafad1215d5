/** The talk of ../openai_conversation.py with @openai/agents-realtime. Arguments: base address with /v1, key, samples. */
import { readFileSync } from 'node:fs';
import { RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime';
import { z } from 'zod';

const [base, key, path] = process.argv.slice(2);
const utterance = new Uint8Array(readFileSync(path)).buffer;
const seen = { answers: [], tools: [], interruptions: 0, bytes: 0, errors: [] };
/** By their ids, as they were before what is said next, sooner than they could be played, has cut them short. */
const answers = new Map();
let turns = 0;

const clock = tool({
  name: 'clock',
  description: 'The time of day.',
  parameters: z.object({ zone: z.enum(['UTC', 'CET']) }),
  execute: ({ zone }) => {
    seen.tools.push(['clock', zone]);
    return 'noon';
  },
});
const agent = new RealtimeAgent({ name: 'Host', instructions: 'Be brief.', tools: [clock] });
const session = new RealtimeSession(agent, { transport: 'websocket', model: 'gpt-realtime' });

function say() {
  turns += 1;
  session.sendAudio(utterance);
}

function end() {
  session.close();
  process.stdout.write(`${JSON.stringify(seen)}\n`);
}

session.on('error', ({ error }) => {
  seen.errors.push(JSON.stringify(error));
  end();
});
session.on('audio', ({ data }) => {
  seen.bytes += data.byteLength;
  if (turns === 2) say(); // over the story
});
session.on('audio_interrupted', () => {
  seen.interruptions += 1;
});
session.on('audio_stopped', () => {
  if (turns === 1) say();
});
session.on('history_updated', (history) => {
  const whole = history.filter(({ role, status }) => role === 'assistant' && status === 'completed');
  for (const { itemId, content } of whole) {
    const text = content.map(({ transcript }) => transcript ?? '').join('');
    if (text.length > (answers.get(itemId) ?? '').length) answers.set(itemId, text);
  }
  seen.answers = [...answers.values()];
  if (turns === 3 && seen.answers.length === 2) end();
});

await session.connect({ apiKey: key, url: `${base.replace('http', 'ws')}/realtime?model=gpt-realtime` });
say();
