#!/usr/bin/env node
/** The executable: it hands the command line to cli/ and does nothing else. */
import { run } from './cli/program.ts';

await run(process.argv);
