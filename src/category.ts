/** The three capabilities of the gateway: traffic is counted by them (contract 2.4), and one of them holds the slot. */
export const CATEGORIES = ['asr', 'tts', 'llm'] as const;
export type Category = (typeof CATEGORIES)[number];
