/** What people call the three capabilities. */
import type { Category } from '../../category.ts';

export const CATEGORY_NAMES: Readonly<Record<Category, string>> = {
  asr: 'Speech to text',
  tts: 'Speech',
  llm: 'Chat',
};
