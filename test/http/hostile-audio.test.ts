/** Files that were made to cost much are refused before other clients have to wait for them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mulaw, repeatingMatroska, repeatingMovie } from '../bad-files/repeats.ts';
import { endlessSearch, vorbisOfGigabytes } from '../hostile-audio.ts';
import { form, json, post, startGateway, toneWav, until } from './harness.ts';

test('a Vorbis file of 3 kB that asks for gigabytes is refused at once, for little memory', async () => {
  await using gateway = await startGateway();
  // The first request compiles and loads code whose cost is not the file's.
  assert.equal((await post(gateway, form(toneWav(2)))).status, 200);
  const peakKb = process.resourceUsage().maxRSS;
  // The best of three, because a busy machine counts some of its own work as this process's.
  const work: number[] = [];
  for (let round = 0; round < 3; round++) {
    const before = process.cpuUsage();
    const response = await post(gateway, form(vorbisOfGigabytes(), {}, 'speech.ogg'));
    const { user, system } = process.cpuUsage(before);
    work.push((user + system) / 1000);
    const { error } = await json(response);
    assert.equal(response.status, 400);
    assert.equal(error.kind, 'malformed');
    assert.equal(error.code, 'undecodable_audio');
  }
  assert.ok(Math.min(...work) < 100, `${work.join(', ')} ms of work`);
  const grownKb = process.resourceUsage().maxRSS - peakKb;
  assert.ok(grownKb < 50 * 1024, `${grownKb} kB more`);
});

test('a file that plays the same bytes again and again is refused, before or within a stream', async () => {
  await using gateway = await startGateway({ env: { PATH: process.env.PATH ?? '' } });
  const movie = await post(gateway, form(repeatingMovie(mulaw(3), 7400), {}, 'speech.mov'));
  assert.equal(movie.status, 400);
  const { error } = await json(movie);
  assert.deepEqual([error.kind, error.code, error.param], ['malformed', 'repeated_audio', 'file']);
  const matroska = form(repeatingMatroska(mulaw(3), 1000), { stream: 'true' }, 'speech.mka');
  const stream = await (await post(gateway, matroska)).text();
  assert.match(stream, /^event: error\ndata: .*"repeated_audio"/m);
  assert.equal((await post(gateway, form(toneWav(2)))).status, 200);
});

test('clients that leave while their files are opened free the threads that opened them', async () => {
  await using gateway = await startGateway();
  const file = endlessSearch(4 << 20);
  const clients = Array.from({ length: 12 }, () => new AbortController());
  const answers = clients.map(({ signal }) =>
    post(gateway, form(file, {}, 'speech.mp3'), { signal }).catch(() => null),
  );
  await until('files are opened', () => gateway.opening() >= 8, 10_000);
  for (const client of clients) client.abort();
  await Promise.all(answers);
  await until('no file is opened any more', () => gateway.opening() === 0);
  assert.equal((await post(gateway, form(toneWav(2)))).status, 200);
});
