/** Measures the gateway of this checkout through HTTP, the upload included. */
import { KEEPS_MODELS, startGatewayProcess } from '../common/gateway.ts';
import { ownVersion } from '../common/machine.ts';
import { type MeasuredProcess, UNMEASURED } from '../common/processes.ts';
import type { Peer, PeerOptions, Run, Task, TimedWord } from './peer.ts';
import { transcribe } from './upload.ts';

type Options = Pick<PeerOptions, 'threads' | 'device' | 'gatewayModel' | 'url'>;

export function startVoxgate(options: Options): Promise<Peer> {
  return start('voxgate', options, {});
}

/** Decodes greedily, as the peers with one beam do. By default texts in doubt are heard again with several. */
export function startVoxgateBeam1(options: Options): Promise<Peer> {
  return start('voxgate beam 1', options, { beam_size: '1' });
}

/** @param fields of every request, besides those that its task asks for */
async function start(name: string, options: Options, fields: Record<string, string>): Promise<Peer> {
  const { device = 'cpu', gatewayModel, url } = options;
  const weights = device === 'cuda' ? 'f16' : 'q8_0';
  const version =
    url === undefined ? `${ownVersion()}, ${gatewayModel}, ${weights}` : `at ${url}, ${gatewayModel}`;
  const gateway = await gatewayOf(options);
  const own = { ...fields, model: gatewayModel };
  return { ...gateway, name, version, transcribe: (task) => ask(gateway.base, own, task) };
}

/** Starts on a free port, unless `url` names a running gateway, whose processor time and memory are not known. */
export async function gatewayOf(options: Options): Promise<MeasuredProcess & { base: string }> {
  const { threads, device = 'cpu', url } = options;
  if (url !== undefined) return { ...UNMEASURED, base: url };
  return startGatewayProcess({ SVC_THREADS: String(threads), SVC_DEVICE: device, ...KEEPS_MODELS });
}

async function ask(base: string, own: Record<string, string>, task: Task): Promise<Run> {
  const { audio, language, timed = false, words = false, stream = false, detected = false } = task;
  const fields = {
    ...own,
    language,
    ...(stream ? { stream: 'true' } : {}),
    ...(timed || words ? { response_format: 'verbose_json' } : {}),
    ...(words ? { 'timestamp_granularities[]': 'word' } : {}),
  };
  const { wallMs, firstMs, body } = await transcribe(base, audio, fields, stream ? '"delta"' : undefined);
  const last = stream ? body.slice(body.lastIndexOf('data: ') + 'data: '.length) : body;
  const answer = JSON.parse(last) as { text: string; words?: TimedWord[] };
  const run = { wallMs, firstMs, text: answer.text, words: answer.words ?? [] };
  if (language !== 'auto' || !detected) return run;
  // The plain answer does not name the language, so that another request, which is not timed, asks for it.
  const verbose = await transcribe(base, audio, { ...own, language, response_format: 'verbose_json' });
  return { ...run, language: (JSON.parse(verbose.body) as { language_code: string }).language_code };
}
