/** The answer to `describe`: what this gateway can transcribe with, in the words of Wyoming. */
import type { RoutableModel } from '../../transcription/routing.ts';

const HUB = 'https://huggingface.co';

type Model = Pick<RoutableModel, 'id' | 'languages' | 'installed' | 'files'>;

/** @param models those that can serve requests; Home Assistant offers the languages of the installed ones */
export function infoOf(models: readonly Model[], version: string) {
  const program = {
    name: 'voxgate',
    description: 'Speech to text inside of one gateway',
    attribution: { name: 'voxgate', url: '' },
    installed: models.some((model) => model.installed),
    version,
    models: models.map(({ id, languages, installed, files }) => {
      const repo = (files.f16 ?? files.q8_0)?.repo ?? '';
      const attribution = { name: repo, url: `${HUB}/${repo}` };
      return { name: id, description: id, attribution, installed, version: null, languages };
    }),
    supports_transcript_streaming: true,
    requires_external_vad: true, // the client says where its audio ends
  };
  return { asr: [program], tts: [], handle: [], intent: [], wake: [], mic: [], snd: [] };
}
