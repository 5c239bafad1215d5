/** Simulates how long requests wait before several gateways, and how many gateways a day's audio needs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from '../common/machine.ts';
import { WRITE } from '../common/options.ts';
import { findPlace } from '../common/page.ts';
import { scalePicture, scaleReport } from './scale-report.ts';

const { values: options } = parseArgs({ options: { write: WRITE } });

const place = options.write ? findPlace('scale', 'docs/scale.md') : null;
const report = scaleReport();
process.stdout.write(`${report}\n`);
if (place !== null) {
  place.write(report);
  writeFileSync(join(ROOT, 'docs/images/scale-waits.svg'), scalePicture());
}
