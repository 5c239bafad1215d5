/** The voice loop of the playground knows by the loudness when a turn is over. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

/** The page's own module, which has no types. */
const TURN = new URL('../../assets/playground/turn.js', import.meta.url).href;
const { createTurn }: { createTurn(): (level: number, sec: number) => { spoken: boolean; over: boolean } } =
  await import(TURN);

const STEP_SEC = 0.05;

/**
 * @param parts levels with how many seconds each lasts
 * @returns when the turn was over, and whether someone had spoken; null where it goes on
 */
function turnOf(...parts: [level: number, sec: number][]): { sec: number; spoken: boolean } | null {
  const hear = createTurn();
  let sec = 0;
  for (const [level, lasts] of parts) {
    for (const until = sec + lasts; sec < until; ) {
      sec += STEP_SEC;
      const { spoken, over } = hear(level, sec);
      if (over) return { sec, spoken };
    }
  }
  return null;
}

const about = (expected: number, turn: ReturnType<typeof turnOf>) =>
  assert(turn !== null && Math.abs(turn.sec - expected) < 0.2, JSON.stringify(turn));

const ROOM = 0.01;
const SPEECH = 0.2;

test('a turn is over 1.2 s after speech, and short pauses do not end it', () => {
  about(3.2, turnOf([ROOM, 1], [SPEECH, 1], [ROOM, 5]));
  about(5.2, turnOf([ROOM, 1], [SPEECH, 1], [ROOM, 1], [SPEECH, 1], [ROOM, 5]));
  assert.equal(turnOf([ROOM, 1], [SPEECH, 1], [ROOM, 1]), null);
});

test('the noise of a room is no speech, nor is a click', () => {
  assert.equal(turnOf([0.1, 20]), null);
  assert.equal(turnOf([ROOM, 1], [SPEECH, 0.1], [ROOM, 5]), null);
  about(4.2, turnOf([0.05, 2], [0.5, 1], [0.05, 5]));
});

test('a turn without a pause is over after two minutes, and one without speech after half a minute', () => {
  const phrase: [number, number][] = [
    [SPEECH, 2],
    [ROOM, 0.5],
  ];
  const endless = turnOf([ROOM, 1], ...Array.from({ length: 60 }, () => phrase).flat());
  about(120, endless);
  assert.equal(endless?.spoken, true);
  const silent = turnOf([ROOM, 40]);
  about(30, silent);
  assert.equal(silent?.spoken, false);
});

test('a microphone that gives nothing at first hears the turn', () => {
  about(4.2, turnOf([0, 1], [ROOM, 1], [SPEECH, 1], [ROOM, 5]));
});
