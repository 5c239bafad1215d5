/** The record of one answer of a conversation, made when the answer is over. */

/**
 * What an answer takes time for, in this order, until its first audio: the text of the speech that it answers, the wait
 * for the slot, the first word of the chat daemon, and the first audio of its first sentence.
 */
export type AnswerStage = 'text' | 'slot' | 'chat' | 'speech';

export interface AnswerRecord {
  status: 'completed' | 'cancelled' | 'failed' | 'incomplete';
  /** Why it is not complete, in words of this gateway, so that the number of different ones is bounded; '' when it is. */
  reason: string;
  /** The stages that it came to: no `text` where it answers no speech, no `speech` where it is written. */
  stagesMs: Partial<Record<AnswerStage, number>>;
  /** From the end of speech; absent where it answers no speech, or no audio came. */
  firstAudioMs?: number | undefined;
}
