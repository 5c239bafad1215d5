/** Lighthouse's figures on a phone: slow 4G, and a quarter of the computing. */
import { defaultConfig } from 'lighthouse';
import { testPages } from './lighthouse.ts';

testPages('phone', defaultConfig);
