/** The three capabilities of the gateway, as traffic is counted (contract 2.4) and the slot is held. */
export const CATEGORIES = ['asr', 'tts', 'llm'] as const;
export type Category = (typeof CATEGORIES)[number];
