/** `npm run soak -- --seconds 1800 --seed 1` runs a soak and prints its counts. The exit code is 1 if a fault was found. */
import { parseArgs } from 'node:util';
import { findFaults, soak, writeReport } from './soak.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
  },
});
const report = await soak({ seconds: Number(values.seconds), seed: Number(values.seed) });
process.stdout.write(`${writeReport(report)}\n`);
const faults = findFaults(report);
for (const fault of faults) process.stderr.write(`${fault}\n`);
process.exitCode = faults.length === 0 ? 0 : 1;
