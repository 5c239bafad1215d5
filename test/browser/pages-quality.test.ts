/**
 * Every page, in every state a visitor can meet, at three widths and in light or dark: nothing is cut off, axe-core finds
 * nothing, the keyboard reaches every control and shows where it is, and what asks for no motion gets none.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Admin, live, liveUp, startAdmin, upload } from '../http/admin-fixture.ts';
import {
  form,
  type Gateway,
  heard,
  post,
  type Script,
  startGateway,
  toneWav,
  until,
} from '../http/harness.ts';
import { listening } from '../local-server.ts';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { wav } from '../wav.ts';
import { violations } from './axe.ts';
import { browserHearing, openPage, press, status, tooWide } from './browser.ts';
import { startChatDaemon } from './chat-daemon.ts';

/** When this names a folder, a picture of every state is taken there. */
const SHOTS = process.env.VOXGATE_SCREENSHOTS;
const WIDTHS = [1440, 820, 390];
const THEMES = ['light', 'dark'] as const;
/** What is looked at when no pictures are taken: every width once, as a theme changes colors alone. */
const LOOKED_AT = ['light 1440', 'light 820', 'dark 390'];
/** axe-core takes its time, and finds at these what it finds at the others. */
const AXED = ['light 1440', 'dark 390'];
const FIRST_VISIT_BYTES = 300_000;

if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
const browser = await browserHearing(toneWav(2));

const asFile = (name: string, buffer = toneWav(2)) => ({ name, mimeType: 'audio/wav', buffer });
const choose = (page: Page, ...files: ReturnType<typeof asFile>[]) =>
  page.getByLabel('Choose a file').setInputFiles(files);
const LONG_NAME =
  'interview with the second witness, recorded on a bus between two towns (final, really).wav';
const ANSWER =
  'Take **two** steps:\n\n1. `first`\n2. second, which is so long that it has to go over the end of its line\n\n| Model | Words |\n| --- | ---: |\n| tiny | 12 |\n';

/** Never answers before it is left. */
const holding: Script = {
  transcribe: (_samples, _options, { signal }) =>
    new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason))),
};
const talking = (): Script => ({
  speakers: scriptedVoices(),
  transcribe: async () =>
    heard(Array.from({ length: 24 }, (_, i) => ` word${i}${i % 8 === 7 ? '.' : ''}`).join(''), 500),
});

async function startSpeech(): Promise<AsyncDisposable & { base: string }> {
  const server = createServer((req, res) => {
    if (req.method === 'POST') return void res.setHeader('Content-Type', 'audio/wav').end(toneWav(1));
    if (req.url !== '/v1/audio/voices' && req.url !== '/health') return void res.writeHead(404).end();
    res.setHeader('Content-Type', 'application/json').end('{"voices":["alloy","de","en-gb"]}');
  });
  return await listening(server);
}

type Reach = (page: Page, gateway: Gateway) => Promise<unknown>;
type ReachAdmin = (page: Page, admin: Admin) => Promise<unknown>;

/** States of the playground by their names, each with the tab, what the gateway does, and the way to it. */
const PLAYGROUND: Record<string, { tab?: string; script?: Script; reach: Reach }> = {
  'transcription empty': {
    reach: (page) => page.locator('#model-note:not(:empty)').waitFor(),
  },
  'transcription options': { reach: (page) => page.getByText('More options').click() },
  'transcription ready': {
    reach: async (page) => {
      await choose(page, asFile(LONG_NAME));
      await status(page, 'Ready');
    },
  },
  'transcription running': {
    script: holding,
    reach: async (page) => {
      await choose(page, asFile('talk.wav'));
      await press(page, 'Transcribe');
      await status(page, 'Transcribing');
    },
  },
  'transcription done': {
    script: talking(),
    reach: async (page) => {
      await choose(page, asFile(LONG_NAME, wav(conversation(inTurns(6, 36), 36))));
      await page.getByLabel('Tell speakers apart').check();
      await press(page, 'Transcribe');
      await status(page, 'Done');
      const names = page.getByLabel(/^Name of speaker/);
      assert((await names.count()) >= 3, `${await names.count()} speakers`);
      await names.first().fill('Someone with a name that is much too long for its place');
      await page.locator('.takes > li').first().waitFor();
    },
  },
  'transcription busy': {
    script: holding,
    reach: async (page, gateway) => {
      void post(gateway, form(toneWav(1))).catch(() => {});
      await until('the slot is held', () => gateway.running() === 1);
      await choose(page, asFile('talk.wav'));
      await press(page, 'Transcribe');
      await page.locator('#busy .busy-text').waitFor();
    },
  },
  'transcription refused': {
    reach: async (page) => {
      await choose(page, asFile('notes.mp3', Buffer.from('no audio '.repeat(99))));
      await press(page, 'Transcribe');
      await status(page, 'That did not work.');
    },
  },
  'transcription several files': {
    script: talking(),
    reach: async (page) => {
      await choose(
        page,
        asFile('a.wav'),
        asFile(LONG_NAME),
        asFile('c.mp3', Buffer.from('no audio '.repeat(99))),
      );
      await press(page, 'Transcribe');
      await status(page, /^Done/);
    },
  },
  'live idle': { tab: 'live', reach: (page) => page.getByRole('tabpanel', { name: 'Live' }).waitFor() },
  'live listening': {
    tab: 'live',
    reach: async (page) => {
      await page.locator('#live').click();
      await status(page, 'Listening.');
    },
  },
  'live stopped': {
    tab: 'live',
    reach: async (page) => {
      await page.locator('#live').click();
      await page.locator('#live-text').filter({ hasText: 'Hello' }).waitFor();
      await press(page, 'Stop live');
      await status(page, 'Stopped.');
      await page.locator('#live-exports > summary').click();
    },
  },
  'speech idle': { tab: 'speech', reach: (page) => status(page, 'Write something') },
  'speech done': {
    tab: 'speech',
    reach: async (page) => {
      await page.getByLabel('Text', { exact: true }).fill('Good morning to you all. '.repeat(4));
      await press(page, 'Speak');
      await status(page, 'Done');
    },
  },
  'speech down': {
    tab: 'speech',
    reach: async (page) => {
      const error = {
        kind: 'unavailable',
        message: 'The speech server cannot be reached',
        code: 'upstream_unavailable',
      };
      await page.route('**/audio/speech**', (route) => route.fulfill({ status: 502, json: { error } }));
      await page.getByLabel('Text', { exact: true }).fill('Good morning.');
      await press(page, 'Speak');
      await page.locator('#speech-problem').waitFor();
    },
  },
  'chat idle': { tab: 'chat', reach: (page) => page.getByRole('tabpanel', { name: 'Chat' }).waitFor() },
  'chat answered': {
    tab: 'chat',
    reach: async (page) => {
      await page.getByLabel('Message', { exact: true }).fill('What shall I do?');
      await page.keyboard.press('Enter');
      await status(page, 'Done.');
    },
  },
  'voice idle': { tab: 'voice', reach: (page) => status(page, 'Start, and say something.') },
  'voice listening': {
    tab: 'voice',
    reach: async (page) => {
      await press(page, 'Start talking');
      await status(page, /Listening|Thinking|Speaking/);
    },
  },
  'models unknown': {
    reach: async (page) => {
      const error = { kind: 'internal', message: 'Something broke', code: 'internal_error' };
      await page.route('**/v1/models', (route) => route.fulfill({ status: 500, json: { error } }));
      await page.reload();
      await page.getByText('cannot be listed').waitFor();
    },
  },
  'key asked for': {
    reach: async (page) => {
      const error = { kind: 'unauthorized', message: 'An API key is needed', code: 'invalid_api_key' };
      await page.route('**/v1/**', (route) => route.fulfill({ status: 401, json: { error } }));
      await page.reload();
      await page.getByRole('dialog').waitFor();
    },
  },
};

const shownAll = (page: Page) =>
  until('all is there', async () => (await page.locator('.loading').count()) === 0, 20_000);

const ADMIN: Record<string, { path?: string; with?: (admin: Admin) => void; reach: ReachAdmin }> = {
  'dashboard fresh': {
    with: (admin) => {
      admin.models.length = 0;
    },
    reach: shownAll,
  },
  'dashboard trouble': {
    with: (admin) => {
      liveUp(admin);
      const says = 'The disk of models is full';
      const full = { key: 'disk', level: 'bad', says, short: 'disk full', detail: '12 MiB free' } as const;
      admin.troubles.push({ ...full, since: new Date() });
      const lastAnswer = { status: 'completed', stages: [{ name: 'text', ms: 210 }] } as const;
      const lastError = { code: 'slot_busy', says: 'The slot is busy', at: new Date() };
      admin.live.push(live({ state: 'answering', lastAnswer, lastError }));
      admin.uploads.push(upload('10.0.0.9'));
      for (const one of ['7b1c', '9d02']) admin.captured.add(one);
      admin.toggles.payload = true;
      admin.slot.take('asr', '4f2a9c81d07be356');
    },
    reach: async (page) => {
      await shownAll(page);
      await page.locator('#chart-latency canvas').waitFor();
    },
  },
  'dashboard away': {
    reach: async (page, admin) => {
      await shownAll(page);
      await admin.goAway();
      await page.locator('#unreachable').waitFor();
    },
  },
  'dashboard question': {
    reach: async (page) => {
      await shownAll(page);
      await press(page, 'Remove multilingual-tiny');
      await page.getByRole('dialog').waitFor();
    },
  },
  capture: {
    path: '/admin/captures/form',
    with: (admin) => void admin.captured.add('form'),
    reach: (page) => page.getByText('meta.json').first().waitFor(),
  },
};

/* What is asserted */

/** Lists the controls that a reader sees, and that no Tab leads to or shows the focus on. */
const CONTROLS = `(() => {
  const seen = (el) => el.checkVisibility({ visibilityProperty: true }) && !el.closest('[inert]') &&
    !el.matches(':disabled') && el.tabIndex >= 0;
  const open = document.querySelector('dialog[open]') ?? document;
  const name = (el) => el.tagName.toLowerCase() + (el.id ? '#' + el.id : '') + ' ' +
    (el.getAttribute('aria-label') ?? el.textContent.trim().slice(0, 30));
  globalThis.nameOf = name;
  // Of radio buttons the chosen one has the focus, and arrows lead to the others.
  const one = (el) => el.type !== 'radio' || el.checked;
  return [...open.querySelectorAll('a[href], button, input, select, textarea, summary, audio[controls], [tabindex]')]
    .filter((el) => seen(el) && one(el)).map(name);
})()`;
const FOCUS = `(() => {
  const el = document.activeElement;
  if (el === null || el === document.body) return null;
  const drawn = (one) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(one);
    return outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
  };
  const around = el.closest('label');
  return { name: globalThis.nameOf(el), visible: drawn(el) || (around !== null && drawn(around)) };
})()`;

async function unreachable(page: Page): Promise<string[]> {
  const wanted = await page.evaluate<string[]>(CONTROLS);
  const met = new Set<string>();
  const found: string[] = [];
  await page.evaluate(`document.activeElement?.blur()`);
  for (let presses = 0; presses < wanted.length + 40; presses++) {
    await page.keyboard.press('Tab');
    const focus = await page.evaluate<{ name: string; visible: boolean } | null>(FOCUS);
    if (focus === null) continue;
    if (!focus.visible && !met.has(focus.name)) found.push(`no focus is seen on ${focus.name}`);
    met.add(focus.name);
    if (wanted.every((name) => met.has(name))) break;
  }
  return [...found, ...wanted.filter((name) => !met.has(name)).map((name) => `no Tab leads to ${name}`)];
}

const endless = (page: Page) =>
  page.evaluate<number>(`document.getAnimations().filter(({ effect, playState }) =>
    playState === 'running' && effect.getComputedTiming().iterations === Infinity).length`);

/** The hints of fields, and the choices of lists, that have no room. */
const CUT_TEXTS = `(() => {
  const ARROW = 20;
  const pen = document.createElement('canvas').getContext('2d');
  return [...document.querySelectorAll('input[placeholder], select')].flatMap((field) => {
    const { font, paddingLeft, paddingRight } = getComputedStyle(field);
    pen.font = font;
    const text = field.placeholder ?? field.selectedOptions[0]?.text ?? '';
    const arrow = field.matches('select') ? ARROW : 0;
    const room = field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) - arrow;
    return field.checkVisibility() && pen.measureText(text).width > room ? ['cut off: ' + text] : [];
  });
})()`;

/** Whatever a state is, this holds for it. */
async function examine(page: Page, state: string): Promise<void> {
  const found: string[] = [];
  for (const colorScheme of THEMES) {
    for (const width of WIDTHS) {
      const scene = `${colorScheme} ${width}`;
      if (SHOTS === undefined && !LOOKED_AT.includes(scene)) continue;
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: 900 });
      const cut = [...(await tooWide(page)), ...(await page.evaluate<string[]>(CUT_TEXTS))];
      found.push(...cut.map((what) => `${scene}: ${what}`));
      if (AXED.includes(scene)) found.push(...(await violations(page)).map((what) => `${scene}: ${what}`));
      if (SHOTS === undefined) continue;
      const path = join(SHOTS, `state-${state.replaceAll(' ', '-')}-${width}-${colorScheme}.png`);
      // All of it is drawn, and nothing sticks in the middle of the picture.
      const height = await page.evaluate<number>('document.documentElement.scrollHeight');
      await page.setViewportSize({ width, height: Math.max(900, height) });
      await page.screenshot({ path, fullPage: true });
    }
  }
  if ((await endless(page)) > 0) found.push('something moves, though no motion is wanted');
  found.push(...(await unreachable(page)));
  assert.deepEqual(found, [], state);
}

for (const [state, { tab = 'transcription', script = {}, reach }] of Object.entries(PLAYGROUND)) {
  test(`the playground is whole: ${state}`, async () => {
    await using speech = await startSpeech();
    await using daemon = await startChatDaemon(() => [ANSWER]);
    const env = { SVC_TTS_UPSTREAM_URL: speech.base, SVC_LLM_BACKEND_URL: daemon.base };
    await using gateway = await startGateway({ transcribe: async () => heard(' Hello.'), ...script, env });
    await using open = await openPage(browser, `${gateway.base}/playground#${tab}`, {
      reducedMotion: 'reduce',
    });
    await reach(open.page, gateway);
    await examine(open.page, state);
  });
}

for (const [state, { path = '/admin', reach, ...more }] of Object.entries(ADMIN)) {
  test(`the dashboard is whole: ${state}`, async () => {
    await using admin = await startAdmin();
    more.with?.(admin);
    await using open = await openPage(browser, admin.base + path, { reducedMotion: 'reduce' });
    await reach(open.page, admin);
    await examine(open.page, state);
  });
}

test('the pages of a gateway with keys and without upstreams are whole', async () => {
  await using locked = await startGateway({ env: { SVC_API_KEY: 'k1' } });
  await using login = await openPage(browser, `${locked.base}/admin`, { reducedMotion: 'reduce' });
  await login.page.getByRole('dialog').waitFor();
  await examine(login.page, 'dashboard login');
  await press(login.page, 'Cancel');
  await examine(login.page, 'dashboard locked');
  await using gateway = await startGateway();
  await using alone = await openPage(browser, `${gateway.base}/playground`, { reducedMotion: 'reduce' });
  await alone.page.getByRole('tab', { name: 'Voice' }).click();
  await alone.page.locator('#missing').waitFor();
  await examine(alone.page, 'playground alone');
});

test('what moves does so only for those who want motion', async () => {
  await using admin = await startAdmin();
  admin.slot.take('asr', 'held');
  await using open = await openPage(browser, `${admin.base}/admin`, { reducedMotion: 'no-preference' });
  await open.page.locator('.slot-state.busy').waitFor();
  await until('it breathes', async () => (await endless(open.page)) > 0);
  await open.page.emulateMedia({ reducedMotion: 'reduce' });
  assert.equal(await endless(open.page), 0);
});

for (const path of ['playground', 'admin']) {
  test(`a first visit of /${path} loads less than 300 kB`, async (t) => {
    await using gateway = await startGateway();
    await using open = await openPage(browser, `${gateway.base}/health`);
    const { page } = open;
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Network.enable');
    await devtools.send('Network.setCacheDisabled', { cacheDisabled: true });
    let bytes = 0;
    devtools.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength;
    });
    await page.goto(`${gateway.base}/${path}`);
    await page.waitForLoadState('networkidle').catch(() => {}); // the dashboard polls
    t.diagnostic(`${Math.round(bytes / 1000)} kB`);
    assert(bytes > 20_000 && bytes < FIRST_VISIT_BYTES, `${bytes}`);
  });
}
