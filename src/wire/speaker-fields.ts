/** Checks the fields about speakers against each other, and turns them into domain terms. Pure. */

import { invalidValue } from '../errors.ts';
import { BUDGETS } from '../limits/budgets.ts';
import { type Aliases, DIARIZES, isOpenAiModel } from '../models/names.ts';
import type { ChannelLabels } from '../transcription/channels.ts';
import type { SpeakerRequest, TranscriptionRequest } from '../transcription/request.ts';

/** The fields as they are sent, each checked by itself. */
export interface SpeakerFields {
  model?: string | undefined;
  response_format?: string | undefined;
  diarize?: boolean | undefined;
  speakers?: 'channels' | undefined;
  channel?: number | undefined;
  num_speakers?: number | undefined;
  min_speakers?: number | undefined;
  max_speakers?: number | undefined;
  known_speaker_names: readonly string[];
  known_speaker_references: readonly string[];
}

/** @throws GatewayError `invalid_value` for fields that do not fit each other */
export function speakersIn(
  f: SpeakerFields,
  aliases: Aliases,
): {
  speakers: SpeakerRequest | null;
  channels: ChannelLabels | null;
} {
  return f.speakers === 'channels'
    ? { speakers: null, channels: channelsIn(f) }
    : { speakers: voicesIn(f, aliases), channels: null };
}

/** @throws GatewayError `invalid_value` where each channel is to be heard */
export function channelIn({ channel, speakers }: SpeakerFields): TranscriptionRequest['channel'] {
  if (channel === undefined) return undefined;
  if (speakers === 'channels') throw invalidValue('channel', channel, 'Expected none for speakers=channels');
  return channel === 0 ? 0 : 1;
}

/** @throws GatewayError `invalid_value` for numbers or lists that do not fit each other */
function voicesIn(f: SpeakerFields, aliases: Aliases): SpeakerRequest | null {
  const { known_speaker_names: names, known_speaker_references: references } = f;
  const { min, max } = countIn(f);
  if (names.length !== references.length) {
    const expected = `Expected one reference for each of the ${names.length} known_speaker_names`;
    throw invalidValue('known_speaker_references', references, expected);
  }
  refuseTwice(names.map((name) => name.trim()));
  const asked =
    f.diarize ??
    (isOpenAiModel([DIARIZES], f.model ?? '', aliases) ||
      f.response_format === 'diarized_json' ||
      names.length > 0);
  if (!asked && f.response_format === 'diarized_json')
    throw invalidValue('diarize', 'off', 'Expected it on for diarized_json');
  if (!asked) return null;
  const known = names.map((name, i) => ({ name: name.trim(), reference: references[i] ?? '' }));
  return { count: { min, max }, known };
}

/** @throws GatewayError `invalid_value` for fields that do not fit two channels, each with one speaker */
function channelsIn(f: SpeakerFields): ChannelLabels {
  const { min, max } = countIn(f);
  if (f.diarize === false) throw invalidValue('diarize', 'off', 'Expected it on for speakers=channels');
  if (min > 2) throw invalidValue('min_speakers', min, 'Expected at most 2 for speakers=channels');
  if (max < 2) throw invalidValue('max_speakers', max, 'Expected at least 2 for speakers=channels');
  const { known_speaker_names: names, known_speaker_references: references } = f;
  if (references.length > 0)
    throw invalidValue('known_speaker_references', references, 'Expected none for speakers=channels');
  if (names.length === 0) return ['A', 'B'];
  const [left, right, ...more] = names.map((name) => name.trim());
  if (left === undefined || right === undefined || more.length > 0) {
    const expected = 'Expected two for speakers=channels: who is left, then who is right';
    throw invalidValue('known_speaker_names', names, expected);
  }
  refuseTwice([left, right]);
  return [left, right];
}

function countIn(f: SpeakerFields): SpeakerRequest['count'] {
  const max = f.num_speakers ?? f.max_speakers ?? BUDGETS.speakers.most;
  const min = f.num_speakers ?? f.min_speakers ?? 1;
  if (min > max) throw invalidValue('min_speakers', min, `Expected at most max_speakers (${max})`);
  return { min, max };
}

function refuseTwice(names: readonly string[]): void {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw invalidValue('known_speaker_names', twice, 'Expected each name once');
}
