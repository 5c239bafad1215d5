/** Bad files come through HTTP to the real decoders; test/deep/bad-files.test.ts tries all of them. */
import { tryBadFiles } from '../bad-files/trial.ts';

tryBadFiles(6);
