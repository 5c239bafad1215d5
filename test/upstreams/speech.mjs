/**
 * `node speech.mjs [PORT]` runs a speech server with OpenAI's surface and the extensions of vLLM-Omni (stream, batch,
 * voices) over espeak-ng. Its audio is wav for every `response_format`, except that `pcm` of the stream is bare
 * samples.
 */
import { once } from 'node:events';
import { builtInVoices, SAMPLE_RATE, speak, wavHeader } from './espeak.mjs';
import { clientSignal, HttpError, Jobs, readBody, readJson, sendJson, serve } from './http.mjs';

const FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'];
const DEFAULT_VOICE = 'alloy';
const MAX_INPUT = 100_000;

const builtIn = builtInVoices();
/** Maps a name to the built-in voice it stands for. @type {Map<string, { base: string, created_at: number }>} */
const registered = new Map();
const jobs = new Jobs();

serve('speech', Number(process.argv[2] ?? 8091), {
  'GET /health': (_req, res) => sendJson(res, 200, { status: 'ok' }),
  'GET /stats': (_req, res) => sendJson(res, 200, jobs),
  'POST /v1/audio/speech': whole,
  'POST /v1/audio/speech/stream': stream,
  'POST /v1/audio/speech/batch': batch,
  'GET /v1/audio/voices': listVoices,
  'POST /v1/audio/voices': registerVoice,
  'DELETE /v1/audio/voices/*': deleteVoice,
});

async function whole(req, res) {
  const request = speechRequest(await readJson(req));
  const wav = await synthesize(request, clientSignal(res));
  res.writeHead(200, { 'content-type': 'audio/wav', 'content-length': wav.length }).end(wav);
}

/** Sends headers at once, and samples as they are made, at the pace at which the client reads. */
async function stream(req, res) {
  const request = speechRequest(await readJson(req));
  const signal = clientSignal(res);
  await jobs.track(signal, async () => {
    const bare = request.format === 'pcm';
    res.writeHead(200, {
      'content-type': bare ? 'audio/pcm' : 'audio/wav',
      'x-sample-rate': SAMPLE_RATE,
    });
    if (bare) res.flushHeaders();
    else res.write(wavHeader());
    for await (const chunk of speak({ ...request, signal })) {
      if (!res.write(chunk)) await once(res, 'drain', { signal });
    }
    res.end();
  });
}

/**
 * Takes `items` (texts or requests, with the body's other members as their defaults), or `input` as an array of
 * texts.
 */
async function batch(req, res) {
  const { items, input, ...defaults } = await readJson(req);
  const list = items ?? input;
  if (!Array.isArray(list) || list.length === 0) {
    throw new HttpError(400, 'invalid_request', '"items" must be a non-empty array.', 'items');
  }
  const requests = list.map((item) =>
    speechRequest({ ...defaults, ...(typeof item === 'string' ? { input: item } : item) }),
  );
  const signal = clientSignal(res);
  const results = [];
  for (const [index, request] of requests.entries()) {
    const wav = await synthesize(request, signal);
    results.push({ index, status: 'success', audio_data: wav.toString('base64'), media_type: 'audio/wav' });
  }
  sendJson(res, 200, { results, total: results.length, succeeded: results.length, failed: 0 });
}

/** @returns {Promise<Buffer>} */
function synthesize(request, signal) {
  return jobs.track(signal, async () => {
    const chunks = [];
    for await (const chunk of speak({ ...request, signal })) chunks.push(chunk);
    const samples = Buffer.concat(chunks);
    return Buffer.concat([wavHeader(samples.length), samples]);
  });
}

function speechRequest({ input, voice = DEFAULT_VOICE, response_format: format = 'wav', speed = 1 }) {
  if (typeof input !== 'string' || input.trim() === '' || input.length > MAX_INPUT) {
    throw new HttpError(
      400,
      'invalid_input',
      `"input" must be 1 to ${MAX_INPUT} characters of text.`,
      'input',
    );
  }
  if (!FORMATS.includes(format)) {
    const known = FORMATS.join(', ');
    throw new HttpError(
      400,
      'invalid_format',
      `"response_format" must be one of ${known}.`,
      'response_format',
    );
  }
  if (typeof speed !== 'number' || !(speed >= 0.25 && speed <= 4)) {
    throw new HttpError(400, 'invalid_speed', '"speed" must be from 0.25 to 4.', 'speed');
  }
  return { text: input, voice: espeakVoice(voice), format, speed };
}

/** @param {unknown} name */
function espeakVoice(name) {
  const voice = builtIn.get(registered.get(name)?.base ?? name);
  if (voice === undefined) throw new HttpError(400, 'voice_not_found', `No voice "${name}".`, 'voice');
  return voice;
}

function listVoices(_req, res) {
  const added = [...registered].map(([name, voice]) => ({ name, ...voice }));
  sendJson(res, 200, { voices: [...builtIn.keys(), ...registered.keys()], uploaded_voices: added });
}

/** Takes `name`, and `base`, the voice it stands for. A recording may come along, but espeak cannot learn from it. */
async function registerVoice(req, res) {
  const { name, base = DEFAULT_VOICE } = await fieldsOf(req);
  if (typeof name !== 'string' || !/^[\w-]{1,64}$/.test(name)) {
    throw new HttpError(400, 'invalid_name', '"name" must be 1 to 64 letters, digits, "_" or "-".', 'name');
  }
  if (!builtIn.has(base)) throw new HttpError(400, 'voice_not_found', `No voice "${base}".`, 'base');
  if (builtIn.has(name) || registered.has(name)) {
    throw new HttpError(409, 'voice_exists', `There is a voice "${name}" already.`, 'name');
  }
  const voice = { base, created_at: Math.floor(Date.now() / 1000) };
  registered.set(name, voice);
  sendJson(res, 201, { success: true, voice: { name, ...voice } });
}

/** Reads JSON or a form. */
async function fieldsOf(req) {
  const type = req.headers['content-type'] ?? '';
  if (!type.startsWith('multipart/form-data')) return await readJson(req);
  const body = await readBody(req);
  try {
    return Object.fromEntries(await new Response(body, { headers: { 'content-type': type } }).formData());
  } catch {
    throw new HttpError(400, 'invalid_form', 'The body is not multipart/form-data.');
  }
}

function deleteVoice(_req, res, name) {
  if (!registered.delete(name)) {
    throw new HttpError(404, 'voice_not_found', `No registered voice "${name}".`, 'name');
  }
  sendJson(res, 200, { success: true, message: `Voice "${name}" is deleted.` });
}
