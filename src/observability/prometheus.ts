/**
 * The traffic as Prometheus series, counted since the start, and series for model loads, the slot, live sessions, the
 * upstreams and the process. Every label has a bounded set of values, so that clients cannot create series: a model that
 * neither the catalogue nor an upstream has becomes `other`.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { CATEGORIES, type Category } from '../category.ts';
import { BUDGETS } from '../limits/budgets.ts';
import { LIVE_PROTOCOLS, type LiveSession } from '../limits/live-places.ts';
import type { AnswerRecord } from './answer-record.ts';
import type { Exchange } from './exchange.ts';
import type { SlotNow } from './metrics.ts';

export type Prometheus = ReturnType<typeof createPrometheus>;

export interface PrometheusOptions {
  /** Values of the label `model`, besides `other` and what the upstreams list. */
  knownModels: Iterable<string>;
  /** These are asked at every scrape. */
  slot(): SlotNow;
  liveSessions(): readonly Pick<LiveSession, 'protocol'>[];
  upstreams: Upstreams;
  /** Labels of `voxgate_build_info`. */
  build: Readonly<Record<'version' | 'cpu' | 'device', string>>;
}

/** What is seen of the upstreams. */
interface Upstreams {
  /** Every cause why one may not serve. */
  causes: readonly string[];
  health(): Promise<readonly UpstreamNow[]>;
  /** The name under which the upstream listed the model, if it did. */
  nameOf(category: 'tts' | 'llm', model: string): string | undefined;
}

export interface UpstreamNow {
  category: 'tts' | 'llm';
  /** Null while it serves. */
  problem: { kind: string } | null;
  /** True when none is meant to be there. */
  isAbsent: boolean;
}

const DURATIONS_SEC = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800];
const WAITS_SEC = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const ANSWERS_SEC = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30];
const LOADS_SEC = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120];
const SPEAKERS = [0, 1, 2, 3, 4, 5, 6, 8, 10, 20];
const FACTORS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 2, 5];

let ofProcess: Registry | null = null;

/**
 * The series of the process have a registry of their own, which all gateways in the process share. The library watches
 * garbage collection with an observer that it never releases, so it must be started only once. Neither the observer
 * nor the histogram of the event loop keeps the process alive.
 */
function processRegistry(): Registry {
  if (ofProcess === null) {
    ofProcess = new Registry();
    collectDefaultMetrics({ register: ofProcess });
  }
  return ofProcess;
}

export function createPrometheus(options: PrometheusOptions) {
  const registry = new Registry();
  const registers = [registry];
  const modelLabel = modelLabels(options);
  // The series are rendered in the order in which they are made.
  const requests = requestSeries(registers);
  const audio = audioSeries(registers);
  const bodies = bodySeries(registers);
  const models = modelSeries(registers);
  const conversations = conversationSeries(registers);
  addSlotSeries(registers, options.slot);
  addLiveSeries(registers, options.liveSessions);
  addUpstreamSeries(registers, options.upstreams);
  addBuildInfo(registers, options.build);

  return {
    contentType: registry.contentType,
    /** Counts an exchange. One without a category is not inference and is left out. */
    record(exchange: Exchange): void {
      const { category } = exchange;
      if (category === undefined) return;
      const model = modelLabel(exchange.model, category);
      requests.total.inc({ category, class: exchange.class, model });
      ifMeasured(exchange.latencyMs, (ms) =>
        requests.duration.observe({ category, class: exchange.class }, ms / 1000),
      );
      ifMeasured(exchange.slotWaitMs, (ms) => requests.slotWait.observe({ category }, ms / 1000));
      ifMeasured(exchange.waitedMs, (ms) => requests.waited.observe({ category }, ms / 1000));
      ifMeasured(exchange.rtf, (rtf) => audio.factor.observe({ category, model }, rtf));
      ifMeasured(exchange.audioSec, (sec) => audio.seconds.inc({ category, model }, sec));
      ifMeasured(exchange.speakers, (count) => audio.speakers.observe(count));
      ifMeasured(exchange.diarizationSec, (sec) => audio.diarization.observe(sec));
      ifMeasured(exchange.bytesIn, (bytes) => bodies.received.inc({ category }, bytes));
      ifMeasured(exchange.bytesOut, (bytes) => bodies.sent.inc({ category }, bytes));
    },
    /** Counts an answer of a conversation. */
    answered({ status, reason, stagesMs, firstAudioMs }: AnswerRecord): void {
      conversations.answers.inc({ status, reason });
      for (const [stage, took] of Object.entries(stagesMs))
        ifMeasured(took, (ms) => conversations.stages.observe({ stage }, ms / 1000));
      ifMeasured(firstAudioMs, (ms) => conversations.firstAudio.observe(ms / 1000));
    },
    modelLoaded(id: string, tookSec: number): void {
      const model = modelLabel(id);
      ifMeasured(tookSec, (sec) => models.loads.observe({ model }, sec));
      models.loaded.inc({ model });
    },
    modelUnloaded: (id: string) => models.loaded.dec({ model: modelLabel(id) }),
    /** All series in the text exposition format. */
    render: async () => (await registry.metrics()) + (await processRegistry().metrics()),
    /** Removes every series of this gateway. */
    close: () => registry.clear(),
  };
}

/**
 * Gives each model its label. What an upstream listed stays a label when the upstream changes its list, so the number of
 * such names has a bound.
 */
function modelLabels({ knownModels, upstreams }: Pick<PrometheusOptions, 'knownModels' | 'upstreams'>) {
  const known = new Set(knownModels);
  const ofUpstreams = new Set<string>();
  return (id: string | undefined, category: Category = 'asr'): string => {
    if (id === undefined || known.has(id)) return id ?? 'other';
    const listed = category === 'asr' ? undefined : upstreams.nameOf(category, id);
    if (listed === undefined) return 'other';
    if (ofUpstreams.size < BUDGETS.metrics.maxUpstreamModels) ofUpstreams.add(listed);
    return ofUpstreams.has(listed) ? listed : 'other';
  };
}

function requestSeries(registers: Registry[]) {
  return {
    total: new Counter({
      name: 'voxgate_requests_total',
      help: 'Inference requests that have ended, by class.',
      labelNames: ['category', 'class', 'model'],
      registers,
    }),
    duration: new Histogram({
      name: 'voxgate_request_duration_seconds',
      help: 'Time from arrival to the last byte.',
      labelNames: ['category', 'class'],
      buckets: DURATIONS_SEC,
      registers,
    }),
    slotWait: new Histogram({
      name: 'voxgate_slot_wait_seconds',
      help: 'Time from arrival to taking the slot: upload, validation, and a wait that was asked for.',
      labelNames: ['category'],
      buckets: WAITS_SEC,
      registers,
    }),
    waited: new Histogram({
      name: 'voxgate_slot_waited_seconds',
      help: 'Time that requests with Prefer: wait waited for the slot.',
      labelNames: ['category'],
      buckets: WAITS_SEC,
      registers,
    }),
  };
}

function audioSeries(registers: Registry[]) {
  return {
    factor: new Histogram({
      name: 'voxgate_real_time_factor_ratio',
      help: 'Seconds that the slot was held for each second of audio.',
      labelNames: ['category', 'model'],
      buckets: FACTORS,
      registers,
    }),
    seconds: new Counter({
      name: 'voxgate_audio_seconds_total',
      help: 'Seconds of audio that were processed.',
      labelNames: ['category', 'model'],
      registers,
    }),
    speakers: new Histogram({
      name: 'voxgate_speakers',
      help: 'Speakers found in each request whose speakers were told apart.',
      buckets: SPEAKERS,
      registers,
    }),
    diarization: new Histogram({
      name: 'voxgate_diarization_seconds',
      help: 'Time spent on telling voices apart, within that of the slot.',
      buckets: DURATIONS_SEC,
      registers,
    }),
  };
}

function bodySeries(registers: Registry[]) {
  return {
    received: new Counter({
      name: 'voxgate_request_body_bytes_total',
      help: 'Bytes of request bodies received.',
      labelNames: ['category'],
      registers,
    }),
    sent: new Counter({
      name: 'voxgate_response_body_bytes_total',
      help: 'Bytes of response bodies sent.',
      labelNames: ['category'],
      registers,
    }),
  };
}

function modelSeries(registers: Registry[]) {
  return {
    loads: new Histogram({
      name: 'voxgate_model_load_seconds',
      help: 'Time to load a model into memory.',
      labelNames: ['model'],
      buckets: LOADS_SEC,
      registers,
    }),
    loaded: new Gauge({
      name: 'voxgate_model_loaded',
      help: 'Copies of the model in memory: 1, or 2 while one still serves and another takes its place.',
      labelNames: ['model'],
      registers,
    }),
  };
}

function conversationSeries(registers: Registry[]) {
  return {
    answers: new Counter({
      name: 'voxgate_conversation_answers_total',
      help: 'Answers of conversations, by how they ended; cancelled by turn_detected is an interruption by speech.',
      labelNames: ['status', 'reason'],
      registers,
    }),
    firstAudio: new Histogram({
      name: 'voxgate_conversation_first_audio_seconds',
      help: 'Time from the end of speech to the first audio of its answer.',
      buckets: ANSWERS_SEC,
      registers,
    }),
    stages: new Histogram({
      name: 'voxgate_conversation_stage_seconds',
      help: 'Parts of the time to the first audio: text of the speech, slot, first word of chat, its speech.',
      labelNames: ['stage'],
      buckets: ANSWERS_SEC,
      registers,
    }),
  };
}

function addSlotSeries(registers: Registry[], slot: () => SlotNow): void {
  new Gauge({
    name: 'voxgate_slot_held',
    help: '1 for the category that holds the inference slot.',
    labelNames: ['category'],
    registers,
    collect() {
      const { holder } = slot();
      for (const category of CATEGORIES) this.set({ category }, category === holder ? 1 : 0);
    },
  });
  new Gauge({
    name: 'voxgate_slot_held_seconds',
    help: 'How long the inference slot has been held; 0 when it is free.',
    registers,
    collect() {
      this.set(slot().heldForMs / 1000);
    },
  });
  new Gauge({
    name: 'voxgate_slot_waiting',
    help: 'Requests that asked to wait for the slot, and work of live sessions that waits for it.',
    labelNames: ['category', 'source'],
    registers,
    collect() {
      const { waiting } = slot();
      for (const category of CATEGORIES) {
        const own = waiting.filter((request) => request.category === category);
        const live = own.filter(({ isLive }) => isLive).length;
        this.set({ category, source: 'request' }, own.length - live);
        this.set({ category, source: 'live' }, live);
      }
    },
  });
  new Gauge({
    name: 'voxgate_slot_longest_wait_seconds',
    help: 'How long the request has waited that waits longest now; 0 when none waits.',
    registers,
    collect() {
      this.set(Math.max(0, ...slot().waiting.map(({ waitedMs }) => waitedMs)) / 1000);
    },
  });
}

function addLiveSeries(registers: Registry[], sessions: PrometheusOptions['liveSessions']): void {
  new Gauge({
    name: 'voxgate_live_sessions',
    help: 'Live sessions that are open.',
    labelNames: ['protocol'],
    registers,
    collect() {
      const open = sessions();
      for (const protocol of LIVE_PROTOCOLS)
        this.set({ protocol }, open.filter((session) => session.protocol === protocol).length);
    },
  });
}

/** An upstream that is absent has no series, so that no alert is about it. */
function addUpstreamSeries(registers: Registry[], { causes, health }: Upstreams): void {
  const present = async () => (await health()).filter(({ isAbsent }) => !isAbsent);
  new Gauge({
    name: 'voxgate_upstream_up',
    help: '1 while the upstream serves.',
    labelNames: ['upstream'],
    registers,
    async collect() {
      const found = await present();
      this.reset();
      for (const { category, problem } of found) this.set({ upstream: category }, problem === null ? 1 : 0);
    },
  });
  new Gauge({
    name: 'voxgate_upstream_problem',
    help: '1 for the cause why the upstream does not serve.',
    labelNames: ['upstream', 'cause'],
    registers,
    async collect() {
      const found = await present();
      this.reset();
      for (const { category, problem } of found)
        for (const cause of causes) this.set({ upstream: category, cause }, problem?.kind === cause ? 1 : 0);
    },
  });
}

function addBuildInfo(registers: Registry[], build: PrometheusOptions['build']): void {
  const info = new Gauge({
    name: 'voxgate_build_info',
    help: 'Always 1. The labels say what runs.',
    labelNames: ['version', 'cpu', 'device'],
    registers,
  });
  info.set(build, 1);
}

/** The library throws on a value that is not a number, and a request must not fail because of its statistics. */
function ifMeasured(value: number | undefined, use: (value: number) => void): void {
  if (value !== undefined && Number.isFinite(value) && value >= 0) use(value);
}
