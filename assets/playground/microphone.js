/** Listens to the microphone as the live protocol takes it: 16-bit PCM, mono, 24 kHz. */

/**
 * @param onPiece (bytes: Uint8Array of 100 ms) => void
 * @param onGone () => void, called when the microphone is unplugged or its permission is taken back
 * @returns {Promise<() => Promise<void>>} stops listening
 */
export async function listen(onPiece, onGone) {
  const stream = await navigator.mediaDevices.getUserMedia({
    audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: true },
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

/** Puts a failure of `listen` into a sentence. */
export function whyNoMicrophone({ name, message }) {
  if (name === 'NotAllowedError') return 'The microphone was not allowed.';
  if (name === 'NotFoundError') return 'No microphone was found.';
  return `The microphone cannot be used: ${message}`;
}
