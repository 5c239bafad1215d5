/** Each sentence 6 and 20 times in each form of the answer; test/model/repeated-speech.test.ts has half of the long ones. */
import { tryRepeatedSpeech } from '../model/repeated-speech.ts';

tryRepeatedSpeech({ isWhole: true });
