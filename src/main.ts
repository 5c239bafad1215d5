#!/usr/bin/env node
/** argv -> cli/. Nothing else. */
import { run } from './cli/program.ts';

await run(process.argv);
