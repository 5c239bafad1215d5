/** Sounds without words from Debian packages: those of desktops, games and instruments, and music. */
import { readdirSync } from 'node:fs';
import { join, parse } from 'node:path';
import { debianPackagePath } from '../clips/debian-package.ts';

export interface PackageSound {
  /** The package. */
  kind: string;
  name: string;
  path: string;
}

interface Source {
  folder: string;
  /** Files that are left out: someone speaks or sings words in them, or may, or they cannot be decoded. */
  without?: RegExp;
}

const SOURCES: Readonly<Record<string, Source>> = {
  'sound-theme-freedesktop': { folder: 'usr/share/sounds/freedesktop/stereo', without: /^audio-/ },
  'yaru-theme-sound': { folder: 'usr/share/sounds/Yaru/stereo', without: /^audio-/ },
  'oxygen-sounds': { folder: 'usr/share/sounds' },
  'deepin-sound-theme': { folder: 'usr/share/sounds/deepin/stereo' },
  'lomiri-sounds': { folder: 'usr/share/sounds/lomiri' },
  'linphone-common': { folder: 'usr/share/sounds/linphone', without: /hello/ },
  'sonic-pi-samples': { folder: 'usr/share/sonic-pi/samples' },
  'lbreakouthd-data': { folder: 'usr/share/games/lbreakouthd', without: /damn|dammit|excellent|verygood/ },
  'circuslinux-data': { folder: 'usr/share/games/circuslinux', without: /wahoo|cheering/ },
  'frozen-bubble-data': { folder: 'usr/share/games/frozen-bubble/snd' },
  pathological: { folder: 'usr/share/games/pathological' },
  'wordwarvi-sound': {
    folder: 'usr/share/wordwarvi',
    without:
      /Source|aaaah|abducted|destiny|scream|help|hoho|lucky|dtox|nice|ooof|spine|radar|quarter|hoo|yay/,
  },
  'rrootage-data': { folder: 'usr/share/games/rrootage' },
  solarwolf: { folder: 'usr/share/games/solarwolf', without: /vaauw/ },
  scratch: { folder: 'usr/share/scratch/Media/Sounds', without: /Human|Vocals/ },
  'asc-music': { folder: 'usr/share/games/asc' },
  'fillets-ng-data': { folder: 'usr/share/games/fillets-ng/music' },
  'singularity-music': { folder: 'usr/share/games/singularity/music' },
  'hyperrogue-music': {
    folder: 'usr/share/hyperrogue',
    // The voices of its figures, and music that cannot be decoded.
    without: /princ|speak|seen-|die-|message-|savino-(?:ocean|ivory|caribbean)/,
  },
};

const AUDIO = /\.(?:ogg|oga|wav|flac|mp3)$/i;

/** All of them, always in the same order. Packages that cannot be had are left out, which is printed. */
export function packageSounds(): PackageSound[] {
  return Object.entries(SOURCES).flatMap(([kind, { folder, without }]) => {
    const found = debianPackagePath(kind, folder);
    if (found === null) return [];
    return readdirSync(found, { recursive: true })
      .map(String)
      .filter((file) => AUDIO.test(file) && without?.test(file) !== true)
      .toSorted()
      .map((file) => {
        const { dir, name } = parse(file);
        return { kind, name: join(dir, name).replaceAll(/\W+/g, '-'), path: join(found, file) };
      });
  });
}
