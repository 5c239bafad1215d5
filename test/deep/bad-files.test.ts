/** All files of which test/http/bad-files.test.ts tries some. */
import { tryBadFiles } from '../bad-files/trial.ts';

tryBadFiles(1);
