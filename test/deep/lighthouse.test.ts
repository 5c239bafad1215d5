/** As test/browser/lighthouse.test.ts, on a desktop: that is faster than the phone. */
import { desktopConfig } from 'lighthouse';
import { testPages } from '../browser/lighthouse.ts';

testPages('desktop', desktopConfig);
