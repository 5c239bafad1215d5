/**
 * `npm run soak -- --seconds 1800 --seed 1` runs a soak and prints its counts; with `--floods` it runs floods of live
 * sessions, bodies and waiting requests instead. The exit code is 1 if a fault was found.
 */
import { parseArgs } from 'node:util';
import { faultsOf, floods } from './floods.ts';
import { findFaults, soak, writeReport } from './soak.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
    floods: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
let faults: string[];
if (values.floods) {
  const report = await floods({ seconds });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  faults = faultsOf(report);
} else {
  const report = await soak({ seconds, seed: Number(values.seed) });
  process.stdout.write(`${writeReport(report)}\n`);
  faults = findFaults(report);
}
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
