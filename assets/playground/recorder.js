/** Records from the microphone: it gives a file, and the loudness while the recording lasts. */
import { decode, toWav } from './sound.js';

/** Says why recording is not possible; null where it is. */
export function whyNoRecording() {
  if (!window.isSecureContext) return 'Recording needs https, or a gateway on this machine.';
  if (navigator.mediaDevices === undefined || window.MediaRecorder === undefined)
    return 'This browser cannot record.';
  return null;
}

/** @param onLevel (peak 0..1, seconds so far), called about 30 times a second */
export async function startRecording(onLevel) {
  // Filters that make a call pleasant take from speech what a recognizer could have used.
  const stream = await navigator.mediaDevices.getUserMedia({
    audio: { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: true },
  });
  try {
    return record(stream, onLevel);
  } catch (error) {
    for (const track of stream.getTracks()) track.stop(); // else the microphone would stay on
    throw error;
  }
}

function record(stream, onLevel) {
  const recorder = new MediaRecorder(stream);
  const parts = [];
  recorder.addEventListener('dataavailable', ({ data }) => parts.push(data));
  const ended = new Promise((resolve) => recorder.addEventListener('stop', resolve, { once: true }));

  const context = new AudioContext();
  const analyser = context.createAnalyser();
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  const startedAt = performance.now();
  const timer = setInterval(() => {
    analyser.getFloatTimeDomainData(samples);
    const peak = samples.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0);
    onLevel(Math.min(1, peak), (performance.now() - startedAt) / 1000);
  }, 33);
  recorder.start();

  return {
    /** Resolves when the recording is over, because of `stop` or because the microphone went away. */
    file: ended.then(async () => {
      clearInterval(timer);
      for (const track of stream.getTracks()) track.stop();
      await context.close();
      const blob = new Blob(parts, { type: recorder.mimeType });
      const audio = await decode(blob);
      if (audio !== null && audio.samples.length > 0) return toWav(audio.samples, 'recording.wav');
      const kind = recorder.mimeType.includes('mp4') ? 'mp4' : 'webm';
      return new File([blob], `recording.${kind}`, { type: recorder.mimeType });
    }),
    stop() {
      if (recorder.state !== 'inactive') recorder.stop();
    },
  };
}
