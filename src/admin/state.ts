/** The first line of the dashboard: what is wrong now and since when. The title and icon of the tab show it, too. */
import { cachedFor } from '../cached-answer.ts';
import type { AdminDeps, Trouble } from './deps.ts';
import { CATEGORY_NAMES, duration } from './views/format.ts';
import { type Html, html } from './views/html.ts';

/** A request that holds the slot for less time is never reported. */
const LONG_HOLD_MS = 120_000;
/** A hold is unusual when it is this many times longer than the slowest recent request. */
const UNUSUAL = 1.5;
const CRASH_SHOWN_MS = 24 * 3_600_000;
/** Probing upstreams and reading crashes from disk is slow, so the result is kept for several polls. */
const KEPT_MS = 8000;

/** Returns what makes the line. */
export function stateView(deps: AdminDeps): () => Promise<Html> {
  const startedAt = new Date(Date.now() - performance.now());
  const slowly = cachedFor(KEPT_MS, () => slowTroubles(deps, startedAt));
  return async () => {
    const troubles = [...heldLong(deps), ...(await slowly()), ...deps.watch.troubles(), ...quick(deps)];
    troubles.sort((a, b) => RANK[a.level] - RANK[b.level]);
    return verdict(troubles, deps.slot.status().holder !== null);
  };
}

const RANK = { bad: 0, warn: 1 } as const;

async function slowTroubles(deps: AdminDeps, startedAt: Date): Promise<Trouble[]> {
  const [upstreams, audio] = await Promise.all([deps.upstreams.health(), deps.audioProblem()]);
  return found([
    ...upstreams.map(
      ({ category, problem, isAbsent, since }) =>
        problem !== null &&
        !isAbsent && {
          key: `upstream-${category}`,
          level: 'bad' as const,
          says: `${UPSTREAMS[category]} ${problem.says}`,
          short: `${CATEGORY_NAMES[category].toLowerCase()} down`,
          detail: 'voxgate doctor says what to do',
          since,
        },
    ),
    deps.cpuLevel === '' && {
      key: 'engine',
      level: 'bad',
      says: 'Transcription is off: the native engine could not be loaded',
      short: 'no engine',
      detail: 'see the log of the start',
      since: startedAt,
    },
    !deps.models.downloads &&
      !deps.models.list().some(({ installed }) => installed) && {
        key: 'no-model',
        level: 'bad',
        says: 'Transcription is off: no model is on disk, and SVC_MODEL_DOWNLOAD is off',
        short: 'no model',
        detail: 'pull one below',
        since: startedAt,
      },
    audio !== null && {
      key: 'audio',
      level: 'warn',
      says: `Some audio cannot be read: ${audio}`,
      short: 'some audio',
      detail: null,
      since: startedAt,
    },
    lastCrash(deps),
  ]);
}

/** Those that are there. */
const found = (maybe: readonly (Trouble | false | null)[]) => maybe.flatMap((one) => one || []);

const UPSTREAMS = { tts: 'The speech upstream', llm: 'The chat daemon' } as const;

function lastCrash({ crashes }: AdminDeps): Trouble | null {
  const [last] = crashes.list();
  if (last === undefined || Date.now() - Date.parse(last.at) > CRASH_SHOWN_MS) return null;
  const how = last.signal ?? (last.exitCode === null ? null : `exit ${last.exitCode}`);
  const after = `after ${duration(last.uptimeSec * 1000)} of uptime`;
  return {
    key: 'crash',
    level: 'warn',
    says: `The server crashed${how === null ? '' : ` (${how})`} and was restarted`,
    short: 'crashed',
    detail: last.requestId === null ? after : `${after}, while serving request ${last.requestId}`,
    since: new Date(last.at),
  };
}

function heldLong({ slot, metrics }: AdminDeps): Trouble[] {
  const { holder, heldForMs, requestId } = slot.status();
  if (holder === null || heldForMs < LONG_HOLD_MS) return [];
  const slowest = Math.max(0, ...metrics.recent(holder).map((sample) => sample.latency_ms));
  if (heldForMs < UNUSUAL * slowest) return [];
  return [
    {
      key: `held-${requestId}`,
      level: 'bad',
      says: `A ${CATEGORY_NAMES[holder].toLowerCase()} request has held the slot unusually long`,
      short: 'slot stuck',
      detail: `request ${requestId}; all others wait or are refused`,
      since: new Date(Date.now() - heldForMs),
    },
  ];
}

/** Troubles that can be found without waiting, because their state is in memory. */
function quick({ captures, models, toggles, onCpu }: AdminDeps): Trouble[] {
  const failed = captures.failure();
  return found([
    failed !== null &&
      !toggles.payload && {
        key: 'capture',
        level: 'warn',
        says: 'Payload capture turned itself off after a disk error',
        short: 'capture off',
        detail: `${failed.why}; it is tried again by itself`,
        since: failed.at,
      },
    ...models.list().map(
      ({ id, failure, failedAt }) =>
        failure !== null &&
        failedAt !== null && {
          key: `model-${id}`,
          level: 'warn' as const,
          says: failure,
          short: 'pull failed',
          detail: null,
          since: failedAt,
        },
    ),
    ...onCpu().map(({ model, why, since }) => ({
      key: `on-cpu-${model}`,
      level: 'warn' as const,
      says: `${model} runs on the CPU: ${why}`,
      short: 'GPU failed',
      detail: 'a full GPU is tried again, up to five times; a lost one needs a restart',
      since,
    })),
  ]);
}

/** At most this many troubles are listed; the others are counted. */
const SHOWN = 6;

/**
 * A screen reader reads all of it whenever it changes. So it shows when a trouble began, not for how long it has lasted,
 * which would change with every poll.
 */
function verdict(troubles: readonly Trouble[], isBusy: boolean): Html {
  const [worst] = troubles;
  const tab = worst?.level ?? (isBusy ? 'busy' : 'ok');
  const more = troubles.length - SHOWN;
  const title =
    worst === undefined
      ? isBusy && 'Busy'
      : `${worst.short.replace(/^./, (first) => first.toUpperCase())}${troubles.length > 1 ? ` +${troubles.length - 1}` : ''}`;
  return html`<div class="verdict" role="status" data-key="verdict" data-tab="${tab}" data-title="${title}">${
    worst === undefined
      ? html`<p class="trouble ok" data-key="well">All is well.</p>`
      : troubles.slice(0, SHOWN).map(troubleView)
  }${more > 0 && html`<p class="note" data-key="more">and ${more} more</p>`}</div>`;
}

const troubleView = ({ key, level, says, detail, since }: Trouble): Html =>
  html`<p class="trouble ${level}" data-key="${key}"><b>${says}</b> <span class="since">since <time datetime="${since.toISOString()}">${since.toISOString().slice(11, 19)}</time></span>${
    detail !== null && html` <span class="note">${detail}</span>`
  }</p>`;
