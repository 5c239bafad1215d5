/**
 * Writes the two networks that tell speakers apart into one GGUF file, from the checkpoints that their authors
 * published. One needs the other, so that they are fetched, verified and loaded as one.
 */
import { embeddingTensors } from './embedding-tensors.ts';
import { writeGguf } from './gguf-writer.ts';
import type { WrittenFile } from './hashed-file.ts';
import { segmentationTensors } from './segmentation-tensors.ts';
import { openTorchCheckpoint } from './torch-checkpoint.ts';

const TEXTS = {
  'general.architecture': 'voxgate-diarization',
  'general.name': 'pyannote segmentation-3.0 and CAM++ zh-en advanced',
  'general.license': 'MIT AND Apache-2.0',
};

/**
 * @param segmentation the path of `pytorch_model.bin` of pyannote/segmentation-3.0
 * @param embedding the path of `campplus_cn_en_common.pt` of speech_campplus_sv_zh_en_16k-common_advanced
 * @throws GatewayError `not_importable`
 */
export async function writeDiarization(
  segmentation: string,
  embedding: string,
  target: string,
): Promise<WrittenFile> {
  const voices = embeddingTensors(await openTorchCheckpoint(embedding));
  const speech = segmentationTensors(await openTorchCheckpoint(segmentation));
  return writeGguf(target, TEXTS, [...speech, ...voices]);
}
