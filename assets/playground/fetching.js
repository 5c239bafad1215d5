/** Follows how the weights of a model come, while a transcription waits for them. */

const EACH_MS = 1000;
/** After this many answers that mention no download, none is expected any more. */
const MOST_SILENT = 3;

const DOING = {
  waiting: 'Waiting for',
  downloading: 'Downloading',
  verifying: 'Checking',
  converting: 'Converting',
  quantizing: 'Compressing',
};

/**
 * Asks until the signal is aborted, or nothing is fetched.
 * @param listModels () => Promise of the entries of /v1/models
 * @param onStep (step) => void; null once nothing is fetched, else `doing`, `model`, `doneBytes` and `totalBytes`
 */
export async function watchFetching(listModels, id, signal, onStep) {
  let silent = 0;
  while (silent < MOST_SILENT) {
    const list = await listModels().catch(() => []);
    if (signal.aborted) return;
    const of = (name) => list.find((entry) => entry.id === name)?.fetching;
    const step = of(id) ?? of('auto');
    silent = step === undefined ? silent + 1 : 0;
    if (step === undefined) onStep(null);
    else
      onStep({
        doing: DOING[step.phase] ?? 'Fetching',
        model: step.model,
        doneBytes: step.done_bytes,
        totalBytes: step.total_bytes,
      });
    await new Promise((resolve) => setTimeout(resolve, EACH_MS));
    if (signal.aborted) return;
  }
}
