/**
 * Makes schedules of requests and of everything that may end them or what they use: clients that leave, the operator's
 * stop, unloading one model or all, the switches, and the end of the gateway. After each, nothing may be left.
 */
import assert from 'node:assert/strict';
import { seededRandom } from '../../bench/common/random.ts';
import type { TranscriptionModel } from '../../src/engine/types.ts';
import { form, type Gateway, json, type Script, startGateway, toneWav, until } from '../http/harness.ts';
import { joinWavs } from '../wav.ts';

export interface Schedules {
  first: number;
  count: number;
  /** Loads the model of a schedule, with its own random numbers. */
  load(random: () => number): Promise<TranscriptionModel>;
  /** The audio of each request; two chunks of a tone when absent. */
  audio?: Buffer;
  /** The longest pause before an action, milliseconds. */
  pauseMs: number;
}

export interface ScheduleReport {
  requests: number;
  answered: number;
  refused: number;
  left: number;
  shutdowns: number;
}

const TWO_CHUNKS = joinWavs(toneWav(0.4), toneWav(2.5, 0), toneWav(0.4));
const MODEL = 'multilingual-base';
/** The longest time that a request may take, on a machine that does other work too. */
const LIMIT_MS = 120_000;
/** One schedule of this many ends with the gateway. */
const SHUTDOWN_EVERY = 20;
const FIELDS: readonly Record<string, string>[] = [
  {},
  { stream: 'true' },
  { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' },
];
/** The reasons for which a request may end here. */
const EXPECTED = ['slot_busy', 'stopped_by_operator', 'shutting_down', 'overloaded', 'model_unloaded'];

interface World extends AsyncDisposable {
  gateway: Gateway;
  /** Models that were loaded and are not closed. */
  open(): number;
}

/** @throws AssertionError that names the seed of the schedule after which something was left */
export async function runSchedules(options: Schedules): Promise<ScheduleReport> {
  const report: ScheduleReport = { requests: 0, answered: 0, refused: 0, left: 0, shutdowns: 0 };
  let world: World | null = null;
  try {
    for (let seed = options.first; seed < options.first + options.count; seed++) {
      const random = seededRandom(seed * 7919);
      world ??= await start(options, random);
      try {
        const ended = await runSchedule(world, random, options, report);
        if (ended) world = null;
      } catch (error) {
        (error as Error).message = `schedule ${seed}: ${(error as Error).message}`;
        throw error;
      }
    }
  } finally {
    await world?.[Symbol.asyncDispose]();
  }
  return report;
}

async function start(options: Schedules, random: () => number): Promise<World> {
  let open = 0;
  const load: NonNullable<Script['loadModel']> = async () => {
    const model = await options.load(random);
    open += 1;
    let closing: Promise<void> | undefined;
    const close = () => (closing ??= model.close().finally(() => (open -= 1)));
    return { ...model, close };
  };
  const gateway = await startGateway({ loadModel: load, env: { SVC_LOG_LEVEL: 'error' } });
  return {
    gateway,
    open: () => open,
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

/** Returns true when the gateway has ended with the schedule. */
async function runSchedule(
  world: World,
  random: () => number,
  { audio = TWO_CHUNKS, pauseMs }: Schedules,
  report: ScheduleReport,
): Promise<boolean> {
  const { gateway } = world;
  const pick = (count: number) => Math.floor(random() * count);
  const requests: { leave: AbortController; done: Promise<void> }[] = [];
  const act = async (path: string, body?: FormData) =>
    void (await (await fetch(gateway.base + path, { method: 'POST', ...(body && { body }) })).text());
  const actions: (() => Promise<unknown> | unknown)[] = [
    () => act(`/admin/api/models/${MODEL}/unload`),
    () => act('/admin/api/reset-asr-state'),
    () => act('/admin/api/slot/stop'),
    () => act(`/admin/api/models/${MODEL}/load`),
    () => requests[pick(requests.length)]?.leave.abort(),
    () => {
      const toggle = new FormData();
      toggle.append('key', ['metrics', 'access_log', 'payload'][pick(3)] ?? '');
      toggle.append('value', pick(2) === 0 ? 'on' : 'off');
      return act('/admin/api/observability/toggle', toggle);
    },
  ];
  const pending: Promise<unknown>[] = [];
  for (let i = 1 + pick(3); i > 0; i--) {
    const leave = new AbortController();
    const fields = { model: MODEL, language: 'en', ...FIELDS[pick(FIELDS.length)] };
    requests.push({ leave, done: request(gateway, form(audio, fields), leave.signal, report) });
    if (pick(2) === 0) await pause(random() * pauseMs);
  }
  for (let i = pick(6); i > 0; i--) {
    await pause(random() * pauseMs);
    pending.push(Promise.resolve(actions[pick(actions.length)]?.()));
  }
  const ends = pick(SHUTDOWN_EVERY) === 0;
  if (ends) {
    await pause(random() * pauseMs);
    report.shutdowns += 1;
    // The actions may find the gateway gone.
    const closed = gateway[Symbol.asyncDispose]();
    await Promise.all([closed, ...requests.map(({ done }) => done), Promise.allSettled(pending)]);
    assert.equal(gateway.app.slot.status().holder, null, 'the slot is free after the end');
    assert.equal(world.open(), 0, 'models are open after the end');
    return true;
  }
  await Promise.all([...pending, ...requests.map(({ done }) => done)]);
  await nothingIsLeft(world);
  return false;
}

async function nothingIsLeft({ gateway, open }: World): Promise<void> {
  // The answer may come a moment before the last of the request is gone, but the slot is free with it.
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
  await until('no upload is left', () => gateway.uploads().length === 0);
  await until('no file is being opened', () => gateway.opening() === 0);
  const page = async () => (await fetch(`${gateway.base}/admin/fragments/models`)).text();
  await until('no model is in use', async () => !/requests? now|>loading</.test(await page()));
  const inMemory = (await page()).includes('>in memory<') ? 1 : 0;
  await until(`the model in memory is the only one, not ${open()}`, () => open() === inMemory);
  // A request whose client has left may still wait for the end of a load.
  const reset = async () =>
    (await json(await fetch(`${gateway.base}/admin/api/reset-asr-state`, { method: 'POST' }))).remaining;
  await until('no evicted model is in use', async () => (await reset()) === 0);
  await until('no model is in memory', () => open() === 0);
}

async function request(
  { base }: Gateway,
  body: FormData,
  signal: AbortSignal,
  report: ScheduleReport,
): Promise<void> {
  report.requests += 1;
  const limit = AbortSignal.timeout(LIMIT_MS);
  try {
    const response = await fetch(`${base}/v1/audio/transcriptions`, {
      ...{ method: 'POST', body, signal: AbortSignal.any([signal, limit]) },
    });
    const text = await response.text();
    const code = /"code":"(\w+)"/.exec(text)?.[1];
    const failed = !response.ok || text.includes('event: error');
    if (!failed) assert.match(text, /"text":/);
    else assert(EXPECTED.includes(code ?? ''), `${response.status} ${text}`);
    report[failed ? 'refused' : 'answered'] += 1;
  } catch (error) {
    assert(!limit.aborted, 'a request has no end');
    if (error instanceof assert.AssertionError) throw error;
    report.left += 1;
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
