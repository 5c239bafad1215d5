/** Every route from every place, signed in and not; test/browser/cross-site.test.ts tries half of that. */
import { tryCrossSite } from '../browser/cross-site.ts';

tryCrossSite(1);
