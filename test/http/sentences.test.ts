/** Sentences may go on in the next chunk (contract 4.3, segment rules), with every family. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { joinWavs } from '../wav.ts';
import { form, heard, json, post, type Script, startGateway, toneWav } from './harness.ts';

/** The first part has room in a first chunk of any family, and the second one not. The pause is short or long. */
const together = joinWavs(toneWav(12), toneWav(1, 0), toneWav(14));
const apart = joinWavs(toneWav(12), toneWav(3, 0), toneWav(14));
const MODELS = ['multilingual-small', 'european', 'cjk'];

/**
 * Fills the first chunk with words to its end, and the second for a short while. A family may hear a chunk again.
 * @param spoken resolves when the second chunk may be heard
 */
function speaker(first: string, second: string, spoken: Promise<void> = Promise.resolve()): Script {
  const chunks: Float32Array[] = [];
  return {
    installed: [...MODELS, 'voice-activity'],
    transcribe: async (samples) => {
      if (!chunks.includes(samples)) chunks.push(samples);
      if (chunks.indexOf(samples) === 0)
        return heard(first, samples.length / 16 / first.trim().split(' ').length);
      await spoken;
      return heard(second);
    },
  };
}

async function segments(script: Script, audio: Buffer, fields: Record<string, string>) {
  await using gateway = await startGateway(script);
  const answer = await json(await post(gateway, form(audio, { response_format: 'verbose_json', ...fields })));
  return answer.segments as { text: string; seek: number; start: number; end: number; tokens: number[] }[];
}

for (const model of MODELS) {
  test(`${model}: a sentence that goes on in the next chunk is one segment`, async () => {
    const all = await segments(speaker(' One. Two and', ' three. Four.'), together, { model });
    assert.deepEqual(
      all.map(({ text, seek, tokens }) => [text, seek, tokens.length]),
      [
        [' One.', 0, 1],
        [' Two and three.', 0, 3],
        [' Four.', all[2]?.seek ?? 0, 1],
      ],
    );
    const [, across] = all;
    assert(across && across.start > 3.9 && across.end > 12.6 && across.end < 13.1, JSON.stringify(across));
  });

  test(`${model}: a sentence goes on across a long pause, in segments and in cues`, async () => {
    const script = speaker(' One. Two and', ' three. Four.');
    const all = await segments(script, apart, { model });
    assert.deepEqual(
      all.map(({ text }) => text),
      [' One.', ' Two and three.', ' Four.'],
    );
    assert(all[1] && all[1].start > 3.9 && all[1].end > 14.5, JSON.stringify(all[1]));
    for (const response_format of ['srt', 'vtt']) {
      await using gateway = await startGateway(speaker(' One. Two and', ' three. Four.'));
      const cues = await (await post(gateway, form(apart, { model, response_format }))).text();
      const shown = cues.split(/\n+/).filter((line) => /^[A-Z][a-z ]+\.$/.test(line));
      assert.deepEqual(shown, ['One.', 'Two and three.', 'Four.'], response_format);
    }
  });

  test(`${model}: text without marks has a segment for each side of a long pause`, async () => {
    const all = await segments(speaker(' one two and', ' three four'), apart, { model });
    assert.deepEqual(
      all.map(({ text }) => text),
      [' one two and', ' three four'],
    );
  });
}

test('subtitles of european end with their chunk', async () => {
  const fields = { model: 'european', segment_granularity: 'subtitle' };
  const all = await segments(speaker(' One. Two and so forth', ' three. Four.'), together, fields);
  for (const { start, end } of all) assert(end - start >= 1 && end - start <= 7, `${start} to ${end}`);
  const [last, first] = [all.findLast(({ seek }) => seek === 0), all.find(({ seek }) => seek > 0)];
  assert(last?.text.endsWith(' forth') && first?.text.startsWith(' three.'), JSON.stringify(all));
});

for (const model of ['multilingual-small', 'cjk']) {
  for (const pauseSec of [1, 8])
    test(`${model}: a stream gives finished sentences before the next chunk, and the rest behind ${pauseSec} s when it is known`, async () => {
      const audio = joinWavs(toneWav(10), toneWav(pauseSec, 0), toneWav(10));
      let hear: () => void = () => undefined;
      const second = new Promise<void>((resolve) => {
        hear = resolve;
      });
      await using gateway = await startGateway(speaker(' One. Two and', ' three. Four.', second));
      const { body } = await post(gateway, form(audio, { model, stream: 'true' }));
      assert(body);
      let text = '';
      for await (const bytes of body.pipeThrough(new TextDecoderStream())) {
        text += bytes;
        if (text.includes('transcript.text.delta')) hear();
      }
      const events = [...text.matchAll(/^data: (.+)$/gm)].map((m) => JSON.parse(m[1] ?? ''));
      assert.deepEqual(
        events.map((event) => event.delta ?? event.text),
        ['One.', ' Two and three.', ' Four.', 'One. Two and three. Four.'],
      );
    });
}

test('without times a chunk is one segment, and the text is the same', async () => {
  await using gateway = await startGateway(speaker(' One. Two and', ' three. Four.'));
  const answer = await json(await post(gateway, form(together, { model: 'cjk' })));
  assert.equal(answer.text, 'One. Two and three. Four.');
});
