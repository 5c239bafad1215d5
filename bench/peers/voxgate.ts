/** Measures the gateway of this checkout through HTTP, the upload included. */
import { startGatewayProcess } from '../common/gateway.ts';
import {
  gitRevision,
  type Peer,
  type PeerOptions,
  packageVersion,
  ROOT,
  type Run,
  type TimedWord,
} from './peer.ts';
import { upload } from './upload.ts';

type Options = Pick<PeerOptions, 'threads' | 'device' | 'gatewayModel' | 'url'>;

export function startVoxgate(options: Options): Promise<Peer> {
  return start('voxgate', options);
}

/** Decodes greedily, as the peers with one beam do. By default texts in doubt are heard again with several. */
export function startVoxgateBeam1(options: Options): Promise<Peer> {
  return start('voxgate beam 1', options, { beam_size: '1' });
}

/**
 * Starts on a free port, unless `url` names a running gateway, whose processor time and memory are not known.
 * @param fields of every request, besides those that its task asks for
 */
async function start(
  name: string,
  { threads, device = 'cpu', gatewayModel, url }: Options,
  fields: Record<string, string> = {},
): Promise<Peer> {
  const version = `${packageVersion(ROOT)} (${gitRevision()}), ${gatewayModel}, ${device === 'cuda' ? 'f16' : 'q8_0'}`;
  const asked = { ...fields, model: gatewayModel };
  if (url !== undefined) {
    return {
      name,
      version: `at ${url}, ${gatewayModel}`,
      transcribe: (task) => ask(url, asked, task),
      cpuSec: () => Number.NaN,
      peakMegabytes: () => Number.NaN,
      [Symbol.asyncDispose]: async () => undefined,
    };
  }
  const child = await startGatewayProcess({
    SVC_THREADS: String(threads),
    SVC_DEVICE: device,
    // The turns of the others may take longer than an idle model is kept.
    SVC_MODEL_KEEP_ALIVE_SEC: '-1',
  });
  return {
    name,
    version,
    transcribe: (task) => ask(child.base, asked, task),
    cpuSec: child.cpuSec,
    peakMegabytes: child.peakMegabytes,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

async function ask(
  base: string,
  asked: Record<string, string>,
  task: Parameters<Peer['transcribe']>[0],
): Promise<Run> {
  const { audio, language, timed = false, words = false, stream = false, detected = false } = task;
  const fields = {
    ...asked,
    language,
    ...(stream ? { stream: 'true' } : {}),
    ...(timed || words ? { response_format: 'verbose_json' } : {}),
    ...(words ? { 'timestamp_granularities[]': 'word' } : {}),
  };
  const url = `${base.replace(/\/$/, '')}/v1/audio/transcriptions`;
  const { wallMs, firstMs, body } = await upload(url, audio, fields, stream ? '"delta"' : undefined);
  const last = stream ? body.slice(body.lastIndexOf('data: ') + 'data: '.length) : body;
  const answer = JSON.parse(last) as { text: string; words?: TimedWord[] };
  const run = { wallMs, firstMs, text: answer.text, words: answer.words ?? [] };
  if (language !== 'auto' || !detected) return run;
  // The plain answer does not tell the language, so that another request, which is not timed, asks for it.
  const told = await upload(url, audio, { ...asked, language, response_format: 'verbose_json' });
  return { ...run, language: (JSON.parse(told.body) as { language_code: string }).language_code };
}
