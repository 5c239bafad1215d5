/**
 * `voxgate serve` over the scripted engine, for tests that need a process of its own. The prompt of a request says what
 * the engine does:
 *
 * - `until PATH`: the transcription ends when the file exists
 * - anything else: it ends at once
 */
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command } from 'commander';
import { registerServeCommand } from '../../src/cli/serve.ts';
import { readConfig } from '../../src/config.ts';
import { chooseDevice } from '../../src/engine/device.ts';
import { createLog } from '../../src/observability/log.ts';
import { heard, type Script, scriptedEngine, scriptedStore } from './harness.ts';

const script: Script = {
  async transcribe(_samples, { prompt }, { signal }) {
    const [what, path = ''] = prompt.split(' ');
    while (what === 'until' && !existsSync(path)) {
      signal?.throwIfAborted();
      await sleep(5);
    }
    return heard(' Hello there.');
  },
};

const program = new Command('voxgate');
registerServeCommand(program, () => {
  const { config, warnings } = readConfig();
  const engine = scriptedEngine(script);
  return {
    ...{ config, warnings, engine, log: createLog(config.logLevel), store: scriptedStore(script) },
    device: chooseDevice(config.device, engine.info.devices),
  };
});
await program.parseAsync();
