/** Lets calls of the system fail one after the other during one call to the gateway, and sees what comes of it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type HubServer, startHub } from '../../model/hub-server.ts';
import { until } from '../../until.ts';
import { type HostileUpstream, startHostileUpstream } from '../hostile-upstream.ts';
import { type Call, unloadAll, type World } from './calls.ts';
import { type InjectedGateway, type Kind, startInjectedGateway } from './injector.ts';
import { FETCHED } from './weights.ts';

export interface Finding {
  call: string;
  kind: Kind;
  /** The call of the system that failed, and whether all that followed failed as well. */
  nth: number;
  onwards: boolean;
  what: string;
}

export interface SweepReport {
  tried: number;
  /** Number of calls of the system during the call, when none fails. */
  calls: number;
  findings: Finding[];
}

export interface Sweeper extends AsyncDisposable {
  /**
   * Tries one call to the gateway with each number that `pick` takes from the calls of the system which it makes.
   * @param onwards whether everything fails from that number on, until the call has ended
   */
  sweep(call: Call, kind: Kind, onwards: boolean, pick: (calls: number) => number[]): Promise<SweepReport>;
}

interface Running extends World {
  /** The number of open files when nothing is done. */
  files: number;
}

const FOREVER = 2 ** 31 - 1;

/** @param dir the folder with the library and the weights */
export async function startSweeper(dir: string): Promise<Sweeper> {
  const hub: HubServer = await startHub(readFileSync(join(dir, `weights/${FETCHED}.bin`)));
  const upstream: HostileUpstream = await startHostileUpstream();
  let world: Running | null = null;
  let settings: NodeJS.ProcessEnv | undefined;

  const start = async (call: Call) => {
    if (world !== null && world.gateway.end() === null && settings === call.settings) return world;
    await world?.gateway[Symbol.asyncDispose]();
    settings = call.settings;
    const gateway = await startInjectedGateway(dir, {
      ...{ HF_ENDPOINT: hub.url, SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url },
      ...settings,
    });
    world = { gateway, dir, files: 0 };
    for (let i = 0; i < 2; i++) {
      await call.prepare?.(world);
      await call.run(world);
    }
    await unloadAll(world);
    world.files = files(gateway);
    return world;
  };

  return {
    async sweep(call, kind, onwards, pick) {
      let current = await start(call);
      await call.prepare?.(current);
      const expected = await call.run(current);
      await call.prepare?.(current);
      current.gateway.arm(kind, 0, 0);
      await call.run(current);
      const { calls } = current.gateway.disarm();
      const report: SweepReport = { tried: 0, calls, findings: [] };
      for (const nth of pick(calls)) {
        current = await start(call);
        const { gateway } = current;
        const found = (what: string) =>
          void report.findings.push({ call: call.name, kind, nth, onwards, what });
        await call.prepare?.(current);
        gateway.arm(kind, nth, onwards ? FOREVER : nth);
        const result = await answerOf(call, current);
        report.tried += Math.min(gateway.disarm().failed, 1);
        if (result !== expected && !result.startsWith('refused: ')) found(result);
        if (result.startsWith('no answer')) {
          found(`the process ended with ${gateway.end()}: ${gateway.printed().slice(-4000)}`);
          await gateway[Symbol.asyncDispose](); // the slot may be held
          continue;
        }
        await call.prepare?.(current).catch(() => undefined);
        const again = await answerOf(call, current);
        if (again !== expected) found(`the next call: ${again}`);
        await rest(current, dir).catch((error: Error) => found(error.message));
      }
      return report;
    },
    async [Symbol.asyncDispose]() {
      await world?.gateway[Symbol.asyncDispose]();
      await hub.close();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

async function answerOf(call: Call, world: World): Promise<string> {
  try {
    return (await call.run(world)).slice(0, 2000);
  } catch (error) {
    // Where the process ends, its end is seen a little later than the end of the connection.
    await until('the process ends', () => world.gateway.end() !== null, 300).catch(() => undefined);
    return `no answer: ${(error as Error).message}`;
  }
}

/** Waits until nothing of the calls is left. @throws Error that says what is left */
async function rest(world: Running, dir: string): Promise<void> {
  const { gateway } = world;
  await until('no upload is left', () => spooled(dir).length === 0);
  await until('all files are closed', () => files(gateway) <= world.files);
  await unloadAll(world);
}

const files = (gateway: InjectedGateway) =>
  gateway.descriptors().filter((target) => target.startsWith('/') && !target.startsWith('/dev/')).length;

const spooled = (dir: string) =>
  readdirSync(join(dir, 'spool'), { recursive: true }).filter((name) => String(name).includes('/'));
