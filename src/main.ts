#!/usr/bin/env -S node --max-semi-space-size=1
/**
 * The executable: it hands the command line to cli/ and does nothing else. By default V8 gives young objects up to 48 MB,
 * which a gateway does not need. Only a flag of the command line can lower that, here and in package.json.
 */
import { run } from './cli/program.ts';

await run(process.argv);
