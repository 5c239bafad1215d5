/** A tab does one job at a time: it waits for the slot, can be stopped at any step, and says how it ended. */
import { RequestFailed } from './request.js';
import { createWaiting } from './wait.js';

/**
 * @param parts elements by name; `start` and `stop` take each other's place, and `busy` is the box of the waiting
 */
export function createJob({ start, stop, status, problem, busy }) {
  let running = null;
  const waitForSlot = createWaiting({ box: busy, after: stop, onStop: abort }, say);
  stop.addEventListener('click', abort);

  function abort() {
    running?.abort();
  }

  function say(text) {
    status.textContent = text;
  }

  function fail(message, requestId = null) {
    problem.textContent = requestId === null ? message : `${message}.\nRequest id: ${requestId}`;
    problem.hidden = false;
    say('That did not work.');
  }

  /** When one button takes the place of the other, the keyboard focus moves to it. */
  function become(next) {
    const focused = document.activeElement;
    running = next;
    start.hidden = next !== null;
    stop.hidden = next === null;
    if (focused === start && next !== null) stop.focus();
    if (focused === stop && next === null) start.focus();
  }

  /** Repeats the request until it is not refused for a busy slot. */
  async function untilServed(attempt, signal) {
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        if (error.code !== 'slot_busy') throw error;
        await waitForSlot(error, signal);
      }
    }
  }

  return {
    say,
    fail,
    get isRunning() {
      return running !== null;
    },
    /** Ends a job whose outcome nobody wants to know any more. */
    drop() {
      abort();
      become(null);
    },
    /**
     * @param work (signal, served) => Promise; `served(attempt)` calls `attempt` until the slot was free, and a second
     *   argument may be a signal that ends sooner than the job
     * @returns false for a job that was dropped
     */
    async run(work) {
      const mine = new AbortController();
      become(mine);
      problem.hidden = true;
      let failure = null;
      await work(mine.signal, (attempt, signal = mine.signal) => untilServed(attempt, signal)).catch(
        (error) => {
          failure = error;
        },
      );
      if (running !== mine) return false;
      become(null);
      if (failure === null) return true;
      if (mine.signal.aborted) say('Cancelled.');
      else if (failure instanceof RequestFailed) fail(failure.message, failure.requestId);
      else throw failure;
      return true;
    },
  };
}
