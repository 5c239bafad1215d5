#!/usr/bin/env -S node --max-semi-space-size=1
/**
 * The executable: it hands the command line to cli/ and does nothing else. Node would give new objects up to 48 MB, which
 * a gateway has no use for; only the command line can say so, here and in package.json.
 */
import { run } from './cli/program.ts';

await run(process.argv);
