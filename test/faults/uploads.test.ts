/**
 * Many uploads at once, slow ones, and more bytes than there is room for: what is refused costs nothing, and every
 * limit has its room back however an upload ends.
 */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OtherBudgets } from '../../src/limits/budgets.ts';
import {
  form,
  type Gateway,
  heard,
  json,
  post,
  startGateway,
  toneWav,
  until,
  untilAborted,
} from '../http/harness.ts';

const MIB = 1024 * 1024;
const FILE = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
const END = '\r\n--x--\r\n';
const field = (name: string, value: string) =>
  `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;

interface Sender {
  socket: Socket;
  said(): string;
  /** Waits for an answer with this status. */
  answered(status: number): Promise<void>;
}

/** Begins a request below HTTP, so that its body can come as late and as slowly as a test likes. */
function begin(gateway: Gateway, headers: string, body: string | Buffer = ''): Sender {
  const { port, hostname } = new URL(gateway.base);
  const socket = connect(Number(port), hostname);
  let said = '';
  socket.on('error', () => undefined);
  socket.on('data', (data) => {
    said += data.toString('latin1');
  });
  const type = 'Content-Type: multipart/form-data; boundary=x';
  socket.write(`POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n${type}\r\n${headers}\r\n\r\n`);
  socket.write(body);
  return {
    socket,
    said: () => said,
    answered: (status) => until(`it is answered with ${status}`, () => said.includes(`HTTP/1.1 ${status} `)),
  };
}

/** An upload whose file has begun to arrive; it stays unfinished. */
async function unfinished(gateway: Gateway, fileBytes = 1000): Promise<Sender> {
  const before = gateway.uploads().length;
  const sender = begin(gateway, 'Content-Length: 1000000', `${FILE}${'x'.repeat(fileBytes)}`);
  await until('its file is on disk', () => gateway.uploads().length > before);
  return sender;
}

const served = async (gateway: Gateway) => {
  const response = await post(gateway, form(toneWav(0.5)));
  await response.arrayBuffer();
  return response.status;
};

const untilServed = (gateway: Gateway) =>
  until('a new upload is served', async () => (await served(gateway)) === 200);

async function nothingIsLeft(gateway: Gateway): Promise<void> {
  await until('no file is left', () => gateway.uploads().length === 0);
}

test('uploads beyond SVC_MAX_UPLOADS are refused before a byte of their body', async () => {
  const budgets = { upload: { leadMs: 60_000 } };
  await using gateway = await startGateway({ env: { SVC_MAX_UPLOADS: '2' }, budgets });
  const [one, two] = [await unfinished(gateway, 500_000), await unfinished(gateway, 500_000)];
  const third = begin(gateway, 'Content-Length: 1000000\r\nExpect: 100-continue');
  await third.answered(503);
  assert.match(third.said(), /^HTTP\/1\.1 503 [\s\S]*"code":"overloaded"/);
  assert.doesNotMatch(third.said(), /100 Continue/);
  const response = await post(gateway, form(toneWav(0.5)));
  assert.deepEqual([response.status, (await json(response)).error.kind], [503, 'network']);
  one.socket.destroy();
  await untilServed(gateway);
  two.socket.destroy();
  await nothingIsLeft(gateway);
});

/** Every way in which an upload can end, with one place for all of them. */
const ENDS: [name: string, run: (gateway: Gateway) => Promise<unknown>, budgets?: OtherBudgets][] = [
  ['is served', async (gateway) => assert.equal(await served(gateway), 200)],
  ['is left by its client', async (gateway) => (await unfinished(gateway)).socket.resetAndDestroy()],
  [
    'ends early',
    async (gateway) => {
      const body = `${FILE}abc`;
      await begin(gateway, `Content-Length: ${body.length}`, body).answered(400);
    },
  ],
  [
    'breaks the rules of HTTP',
    (gateway) => begin(gateway, 'Transfer-Encoding: chunked', 'zzz\r\n').answered(400),
  ],
  [
    'is no form',
    async (gateway) => {
      const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body: 'x' });
      assert.equal(response.status, 400);
    },
  ],
  [
    'has no file',
    async (gateway) => assert.equal((await post(gateway, form(null, { model: 'auto' }))).status, 400),
  ],
  [
    'has an empty file',
    async (gateway) => assert.equal((await post(gateway, form(Buffer.alloc(0)))).status, 400),
  ],
  [
    'is too large',
    async (gateway) => assert.equal((await post(gateway, form(Buffer.alloc(3 * MIB)))).status, 413),
  ],
  [
    'names an unknown model',
    async (gateway) =>
      assert.equal((await post(gateway, form(toneWav(0.5), { model: 'gpt-5' }))).status, 400),
  ],
  [
    'breaks a limit of its form',
    async (gateway) => {
      const fields = Array.from({ length: 200 }, (_, i) => field(`f${i}`, '1')).join('');
      const body = `${fields}${FILE}abc${END}`;
      await begin(gateway, `Content-Length: ${body.length}`, body).answered(400);
    },
  ],
  [
    'stalls',
    async (gateway) => {
      const since = performance.now();
      const sender = await unfinished(gateway);
      await sender.answered(408);
      assert(performance.now() - since >= 295, 'not before the limit');
      await until('its connection is closed', () => sender.socket.closed);
    },
    { upload: { stallMs: 300 } },
  ],
];

for (const [name, run, budgets] of ENDS) {
  test(`an upload that ${name} gives its place back`, async () => {
    await using gateway = await startGateway({
      env: { SVC_MAX_UPLOADS: '1', SVC_MAX_UPLOAD_MB: '2', SVC_MAX_SPOOL_MB: '2' },
      budgets,
    });
    for (let i = 0; i < 3; i++) {
      await run(gateway);
      await untilServed(gateway);
    }
    await nothingIsLeft(gateway);
  });
}

const WHOLE = Buffer.concat([Buffer.from(FILE), toneWav(0.5), Buffer.from(END)]);

/** A whole upload whose transcription has begun, and does not end by itself. */
async function transcribing(gateway: Gateway): Promise<Sender> {
  const sender = begin(gateway, `Content-Length: ${WHOLE.length}`, WHOLE);
  await until('it is transcribed', () => gateway.running() === 1);
  return sender;
}

/** The moments at which a client can leave or half-close, from the head of its upload to the answer. */
const MOMENTS: [name: string, reach: (gateway: Gateway) => Promise<Sender>, requests?: number][] = [
  [
    'after its head',
    async (gateway) => {
      const before = gateway.arrived();
      const sender = begin(gateway, 'Content-Length: 1000000');
      await until('it has arrived', () => gateway.arrived() > before);
      return sender;
    },
  ],
  [
    'when it was told to continue',
    async (gateway) => {
      const sender = begin(gateway, 'Content-Length: 1000000\r\nExpect: 100-continue');
      await until('it may continue', () => sender.said().includes('100 Continue'));
      return sender;
    },
  ],
  ['in the middle of its file', (gateway) => unfinished(gateway, 100_000)],
  [
    'in the middle of its file, without a length',
    async (gateway) => {
      const part = `${FILE}${'x'.repeat(1000)}`;
      const sender = begin(
        gateway,
        'Transfer-Encoding: chunked',
        `${part.length.toString(16)}\r\n${part}\r\n`,
      );
      await until('its file is on disk', () => gateway.uploads().length === 1);
      return sender;
    },
  ],
  [
    'before the last byte of its form',
    async (gateway) => {
      const sender = begin(gateway, `Content-Length: ${WHOLE.length}`, WHOLE.subarray(0, -1));
      await until('its file is on disk', () => gateway.uploads().length === 1);
      return sender;
    },
  ],
  [
    'at its last byte',
    async (gateway) => {
      const before = gateway.arrived();
      const sender = begin(gateway, `Content-Length: ${WHOLE.length}`, WHOLE);
      await until('it has arrived', () => gateway.arrived() > before);
      return sender;
    },
  ],
  ['before its answer', transcribing],
  [
    'with a second upload on its way behind the first',
    async (gateway) => {
      const sender = await transcribing(gateway);
      const before = gateway.arrived();
      const type = 'Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000000';
      sender.socket.write(`POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n${type}\r\n\r\n`);
      sender.socket.write(`${FILE}${'x'.repeat(1000)}`);
      await until('the second one has arrived', () => gateway.arrived() > before);
      return sender;
    },
    2,
  ],
];

for (const [moment, reach, requests = 1] of MOMENTS)
  for (const [way, leave] of [
    ['leaves', (socket: Socket) => void socket.destroy()],
    ['resets its connection', (socket: Socket) => void socket.resetAndDestroy()],
    ['half-closes', (socket: Socket) => void socket.end()],
  ] as const)
    test(`a client that ${way} ${moment} gives everything back`, async () => {
      let holds = false;
      await using gateway = await startGateway({
        env: { SVC_MAX_UPLOADS: '1', SVC_MAX_UPLOAD_MB: '1', SVC_MAX_SPOOL_MB: '1' },
        transcribe: (...args) => (holds ? untilAborted(...args) : Promise.resolve(heard(' Hello there.'))),
      });
      for (let round = 0; round < 2; round++) {
        holds = true;
        const before = gateway.exchanges.length;
        const { socket } = await reach(gateway);
        leave(socket);
        await until('its requests are over', () => gateway.exchanges.length === before + requests);
        await until('its connection is closed', () => socket.destroyed);
        await until('the slot is free', () => gateway.app.slot.status().holder === null);
        await nothingIsLeft(gateway);
        holds = false;
        // A mebibyte fits in only when no byte of the earlier upload counts any more.
        const large = toneWav(32); // 1,024,044 bytes
        await until('all of the space is free', async () => {
          const response = await post(gateway, form(large));
          await response.arrayBuffer();
          return response.status === 200;
        });
      }
      assert.equal(gateway.running(), 0);
    });

test('a second upload behind the first on one connection is answered after it', async () => {
  let finish: () => void = () => undefined;
  await using gateway = await startGateway({
    transcribe: () => new Promise((resolve) => (finish = () => resolve(heard(' Hello there.')))),
  });
  const { socket, said } = await transcribing(gateway);
  const type = `Content-Type: multipart/form-data; boundary=x\r\nContent-Length: ${WHOLE.length}`;
  socket.write(`POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n${type}\r\n\r\n`);
  socket.write(WHOLE);
  await until('the second one has arrived', () => gateway.arrived() === 2);
  assert.equal(said(), '');
  finish();
  await until('both are answered', () => [...said().matchAll(/HTTP\/1\.1 (\d+)/g)].length === 2);
  assert.match(said(), /^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 503 [\s\S]*"code":"slot_busy"/);
  socket.destroy();
  await nothingIsLeft(gateway);
});

test('a client that pauses for longer than its lead loses its place to a new one when all are taken', async () => {
  const env = { SVC_MAX_UPLOADS: '2' };
  await using gateway = await startGateway({ env, budgets: { upload: { leadMs: 3000 } } });
  const slow = [await unfinished(gateway, 500_000), await unfinished(gateway, 500_000)];
  assert.equal(await served(gateway), 503, 'its lead lasts');
  await untilServed(gateway);
  await until('one is ended', () => slow.some(({ said }) => said() !== ''));
  const ended = slow.filter(({ said }) => said() !== '');
  assert.equal(ended.length, 1, 'the other one was not in the way');
  assert.match(ended[0]?.said() ?? '', /^HTTP\/1\.1 408 [\s\S]*"code":"request_timeout"/);
  for (const { socket } of slow) socket.destroy();
});

test('an upload that moves may take many times the limit of a stall', async () => {
  await using gateway = await startGateway({ budgets: { upload: { stallMs: 1000 } } });
  const body = Buffer.concat([Buffer.from(FILE), toneWav(1), Buffer.from(END)]);
  const sender = begin(gateway, `Content-Length: ${body.length}`);
  for (let sent = 0; sent < body.length; sent += 1100) {
    sender.socket.write(body.subarray(sent, sent + 1100));
    await sleep(100);
  }
  await sender.answered(200);
  sender.socket.destroy();
});

test('a client that never stops but is slower than the least rate is ended', async () => {
  await using gateway = await startGateway({
    budgets: { upload: { stallMs: 400, leastBytesPerSec: 10_000 } },
  });
  const sender = await unfinished(gateway);
  const trickle = setInterval(() => sender.socket.write('x'.repeat(50)), 20); // 2500 bytes a second
  sender.socket.on('close', () => clearInterval(trickle));
  await sender.answered(408);
  await until('it is over', () => gateway.exchanges.length === 1);
  assert.equal(gateway.exchanges[0]?.class, '4xx', 'it has not left');
  sender.socket.destroy();
  await nothingIsLeft(gateway);
});

test('an upload that takes too long in all is ended, however steadily it arrives', async () => {
  await using gateway = await startGateway({ budgets: { upload: { totalMs: 500, leastBytesPerSec: 10 } } });
  const sender = await unfinished(gateway);
  const steady = setInterval(() => sender.socket.write('x'.repeat(500)), 20);
  sender.socket.on('close', () => clearInterval(steady));
  await sender.answered(408);
  sender.socket.destroy();
  await nothingIsLeft(gateway);
  assert.equal(await served(gateway), 200);
});

test('the files of all uploads together stay within SVC_MAX_SPOOL_MB', async () => {
  const env = { SVC_MAX_UPLOAD_MB: '1', SVC_MAX_SPOOL_MB: '1' };
  await using gateway = await startGateway({ env });
  const first = begin(gateway, 'Transfer-Encoding: chunked');
  const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
  const wavBytes = toneWav(20).toString('latin1'); // 640,044 bytes
  const sendFile = (to: Sender) =>
    to.socket.write(`${chunk(FILE)}${wavBytes.length.toString(16)}\r\n${wavBytes}\r\n`, 'latin1');
  sendFile(first);
  await until('its file is on disk', () => gateway.uploads().length === 1);
  await until('all of it has arrived', async () => {
    const announced = begin(gateway, 'Content-Length: 700000\r\nExpect: 100-continue');
    await until('it is answered', () => announced.said().includes('HTTP/1.1 '));
    announced.socket.destroy();
    return announced.said().startsWith('HTTP/1.1 503');
  });
  const unannounced = begin(gateway, 'Transfer-Encoding: chunked');
  sendFile(unannounced);
  await unannounced.answered(503);
  assert.match(unannounced.said(), /"code":"overloaded"/);
  await until('its file is gone', () => gateway.uploads().length === 1);
  first.socket.write(`${chunk(END)}0\r\n\r\n`);
  await first.answered(200);
  await untilServed(gateway);
  await nothingIsLeft(gateway);
});

test('the text fields of all forms share a bounded memory', async () => {
  await using gateway = await startGateway({ budgets: { upload: { maxFieldBytes: 150_000 } } });
  const prompt = field('prompt', 'p'.repeat(60_000));
  const first = begin(gateway, 'Content-Length: 1000000', `${prompt}${FILE}xx`);
  await until('its file is on disk', () => gateway.uploads().length === 1);
  const second = begin(gateway, 'Content-Length: 1000000', `${prompt}${FILE}xx`);
  await second.answered(503);
  assert.match(second.said(), /"code":"overloaded"/);
  first.socket.destroy();
  await until('the memory is free', async () => {
    const response = await post(gateway, form(toneWav(0.5), { prompt: 'p'.repeat(60_000) }));
    await response.arrayBuffer();
    return response.status === 200;
  });
});

test('a form that holds most of the memory for text fields gives way to a small one', async () => {
  await using gateway = await startGateway({ budgets: { upload: { maxFieldBytes: 300_000 } } });
  const prompt = field('prompt', 'p'.repeat(60_000));
  const greedy = begin(
    gateway,
    'Content-Length: 1000000',
    `${prompt}${field('keywords', 'x'.repeat(60_000))}${FILE}xx`,
  );
  await until('its file is on disk', () => gateway.uploads().length === 1);
  const response = await post(gateway, form(toneWav(0.5), { prompt: 'p'.repeat(40_000) }));
  assert.equal((await json(response)).text, 'Hello there.');
  await greedy.answered(503);
  assert.match(greedy.said(), /"code":"overloaded"/);
  greedy.socket.destroy();
  await nothingIsLeft(gateway);
});

test('an upload is refused before a byte of its body when the disk has too little free space', async () => {
  await using gateway = await startGateway({ budgets: { upload: { leastFreeBytes: 2 ** 62 } } });
  const refused = begin(gateway, 'Content-Length: 1000\r\nExpect: 100-continue');
  await refused.answered(503);
  assert.match(refused.said(), /"code":"storage_unavailable"/);
  assert.doesNotMatch(refused.said(), /100 Continue|Retry-After/);
  assert(!refused.said().includes(gateway.config.tmpDir), 'the path is for the log only');
  assert(gateway.logged.some((line) => line.includes('bytes are free')));
  assert.equal((await fetch(`${gateway.base}/health`)).status, 200);
});

test('a new upload has a moment to show its bytes when all places are taken', async () => {
  const budgets = { upload: { graceMs: 1000 } };
  await using gateway = await startGateway({ env: { SVC_MAX_UPLOADS: '1' }, budgets });
  await unfinished(gateway, 1);
  const body = Buffer.concat([Buffer.from(FILE), toneWav(0.5), Buffer.from(END)]);
  const late = begin(gateway, `Content-Length: ${body.length}`);
  await until('its head has come alone', () => gateway.arrived() === 2);
  late.socket.write(body);
  await late.answered(200);
  late.socket.destroy();
});

test('one address cannot keep all places, and what gives way is told to come again', async () => {
  const env = { SVC_MAX_UPLOADS: '2', SVC_TRUST_PROXY: 'loopback' };
  await using gateway = await startGateway({ env, budgets: { upload: { leadMs: 60_000 } } });
  const greedy = [await unfinished(gateway, 500_000), await unfinished(gateway, 100_000)];
  const response = await post(gateway, form(toneWav(0.5)), { headers: { 'X-Forwarded-For': '192.0.2.1' } });
  assert.equal((await json(response)).text, 'Hello there.');
  await greedy[1]?.answered(503);
  assert.match(greedy[1]?.said() ?? '', /"code":"overloaded"/);
  assert.equal(greedy[0]?.said(), '');
  for (const { socket } of greedy) socket.destroy();
  await nothingIsLeft(gateway);
});

test('while silent clients take every place again and again, an honest one is served', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_UPLOADS: '4' } });
  const silent: Socket[] = [];
  const attack = setInterval(() => {
    silent.push(begin(gateway, 'Content-Length: 1000000', FILE).socket);
    if (silent.length >= 60) clearInterval(attack);
  }, 200);
  try {
    await sleep(1000); // the attack is in full swing
    for (let i = 0; i < 20; i++) assert.equal(await served(gateway), 200);
  } finally {
    clearInterval(attack);
    for (const socket of silent) socket.destroy();
  }
});
