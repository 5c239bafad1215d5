/** The names of the three capabilities on the pages. */
import type { Category } from '../../category.ts';

export const CATEGORY_NAMES: Readonly<Record<Category, string>> = {
  asr: 'Speech to text',
  tts: 'Speech',
  llm: 'Chat',
};
