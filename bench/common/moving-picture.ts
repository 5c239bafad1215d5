/**
 * `npm run bench -- moving-picture [DIR]` films the playground for the README, light and dark, with real weights: a
 * sample is transcribed, and its words light up as they do while it plays. It needs Chromium and an ffmpeg with libwebp.
 * The page shows how long the transcription took, so film on an idle machine.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { launchBrowser, openPage, press, status } from '../../test/browser/browser.ts';
import { JFK, MODEL, startRealGateway } from '../../test/model/gateway.ts';
import { transcribe } from '../peers/upload.ts';
import { ROOT } from './machine.ts';

const SIZE = { width: 1200, height: 860 };
/** A wider picture would take more than a megabyte. */
const WIDTH = 960;
const FRAME_SEC = 0.2;
const STILL_SEC = 1.2;

interface Frame {
  path: string;
  seconds: number;
}

function assemble(dir: string, frames: readonly Frame[], to: string): void {
  const list = frames.map(({ path, seconds }) => `file '${path}'\nduration ${seconds}`);
  // The concat demuxer ignores the duration of the last file unless it is named once more.
  writeFileSync(join(dir, 'list'), `${list.join('\n')}\nfile '${frames.at(-1)?.path}'\n`);
  const picture = ['-vf', `scale=${WIDTH}:-1:flags=lanczos`, '-fps_mode', 'vfr'];
  const webp = ['-c:v', 'libwebp_anim', '-quality', '70', '-compression_level', '6', '-loop', '0'];
  execFileSync('ffmpeg', [
    ...['-v', 'error', '-y', '-f', 'concat', '-safe', '0', '-i', join(dir, 'list')],
    ...[...picture, ...webp, to],
  ]);
}

async function take(colorScheme: 'light' | 'dark', to: string): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-film-'));
  await using gateway = await startRealGateway();
  await gateway.app.preload(MODEL);
  await transcribe(gateway.base, JFK, {}); // the first one of a process is slower than all others
  const browser = await launchBrowser();
  try {
    await using open = await openPage(browser, `${gateway.base}/playground`, { colorScheme, viewport: SIZE });
    const { page } = open;
    const frames: Frame[] = [];
    const shoot = async (seconds: number) => {
      const path = join(dir, `${frames.length}.png`);
      await page.screenshot({ path });
      frames.push({ path, seconds });
    };
    await page.getByLabel('Choose a file').setInputFiles(JFK);
    await page.evaluate('scrollTo(0, 0)');
    await shoot(STILL_SEC);
    await press(page, 'Transcribe');
    await status(page, 'Done');
    await page.evaluate('scrollTo(0, 0)');
    await shoot(STILL_SEC);
    const lasts = await page.evaluate<number>(`document.querySelector('#audio').duration`);
    // A picture takes longer than a frame lasts, so the sound is moved on instead of played.
    for (let at = 0; at < lasts; at += FRAME_SEC) {
      await page.evaluate(`new Promise((moved) => {
        const audio = document.querySelector('#audio');
        audio.addEventListener('seeked', () => requestAnimationFrame(() => requestAnimationFrame(moved)), { once: true });
        audio.currentTime = ${at.toFixed(2)};
      })`);
      await shoot(FRAME_SEC);
    }
    await shoot(STILL_SEC);
    assemble(dir, frames, to);
  } finally {
    await browser.close();
    rmSync(dir, { recursive: true, force: true });
  }
}

const folder = process.argv[2] ?? join(ROOT, 'docs/images');
for (const colorScheme of ['light', 'dark'] as const)
  await take(colorScheme, join(folder, `transcribing-${colorScheme}.webp`));
