/**
 * `voxgate serve` over the scripted engine, for tests that need a process of its own. The prompt of a request says what
 * the engine does:
 *
 * - `until PATH`: the transcription ends when the file exists
 * - `throw`: an exception that nothing catches, in the middle of the transcription
 * - `sleep MS`: it ends after this time
 * - `fail`: it fails
 * - anything else: it ends at once
 *
 * No processor has the level of instructions that `SVC_CPU` may name.
 */
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../../src/cli/program.ts';
import { ConfigError } from '../../src/config/config.ts';
import { chooseDevice } from '../../src/engine/device.ts';
import { heard, type Script, scriptedEngine, scriptedStore } from './scripted-engine.ts';

const script: Script = {
  async transcribe(_samples, { prompt }, { signal }) {
    const [what, path = ''] = prompt.split(' ');
    while (what === 'until' && !existsSync(path)) {
      signal?.throwIfAborted();
      await sleep(5);
    }
    if (what === 'throw') {
      setImmediate(() => {
        throw new Error('nothing catches this');
      });
      await sleep(60_000, undefined, { signal, ref: false });
    }
    // The reason of an abort is what the engine rejects with, and `sleep` has an error of its own.
    if (what === 'sleep')
      await sleep(Number(path), undefined, { signal }).catch(() => signal?.throwIfAborted());
    if (what === 'fail') throw new Error('the script fails');
    return heard(' Hello there.');
  },
};

await run(process.argv, (config) => {
  if (config.cpu !== 'auto') throw new ConfigError(`SVC_CPU cannot be "${config.cpu}": the script has none`);
  const engine = scriptedEngine(script);
  return { engine, device: chooseDevice(config.device, engine.info.devices), store: scriptedStore(script) };
});
