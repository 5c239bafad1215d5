/** Sentences that are said again and again (repeated-speech.ts); test/deep/repeated-speech.test.ts has all of them. */
import { tryRepeatedSpeech } from './repeated-speech.ts';

tryRepeatedSpeech({ isWhole: false });
