/** Listens to the microphone as the live protocol takes it: 16-bit PCM, mono, 24 kHz. */

/**
 * @param onPiece (bytes: Uint8Array of 100 ms) => void
 * @param onGone () => void, called when the microphone is unplugged or its permission is taken back
 * @param options `deviceId` is the chosen microphone; empty, or gone, for the system's choice. `cancelsEcho` is for a
 *   page that speaks while it listens; else filters take from speech what a recognizer could have used
 * @returns {Promise<() => Promise<void>>} stops listening
 */
export async function listen(onPiece, onGone, { deviceId = '', cancelsEcho = false } = {}) {
  const stream = await navigator.mediaDevices.getUserMedia({
    audio: {
      channelCount: 1,
      echoCancellation: cancelsEcho,
      noiseSuppression: false,
      autoGainControl: true,
      ...(deviceId !== '' && { deviceId: { ideal: deviceId } }),
    },
  });
  let context = null;
  const stop = async () => {
    for (const track of stream.getTracks()) track.stop();
    if (context !== null && context.state !== 'closed') await context.close();
  };
  try {
    // It has the rate of the device: Firefox connects a microphone to no other.
    context = new AudioContext();
    await context.audioWorklet.addModule('assets/playground/pcm-worklet.js');
    const worklet = new AudioWorkletNode(context, 'pcm', {
      numberOfOutputs: 0,
      channelCount: 1,
      channelCountMode: 'explicit',
    });
    worklet.port.onmessage = ({ data }) => onPiece(new Uint8Array(data));
    context.createMediaStreamSource(stream).connect(worklet);
    stream.getAudioTracks()[0].addEventListener('ended', onGone);
    await context.resume();
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/** @returns the loudest sample of a piece, 0..1 */
export function toLevel(bytes) {
  const samples = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
  return samples.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0) / 32_768;
}

/** Puts a failure of `listen` into a sentence. */
export function whyNoMicrophone({ name, message }) {
  if (name === 'NotAllowedError') return 'The microphone was not allowed.';
  if (name === 'NotFoundError') return 'No microphone was found.';
  return `The microphone cannot be used: ${message}`;
}
