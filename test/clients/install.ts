/** Installs beforehand what the tests of this folder would install when they first need it, and wait for. */
import { installUpstreams } from '../upstreams/start.ts';
import { pythonBin } from './python.ts';

installUpstreams();
await pythonBin();
