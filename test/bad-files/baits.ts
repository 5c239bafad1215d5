/** Files that name other files and addresses, which must never be opened. */
import { good } from './cuts.ts';
import { ANY, type BadFile, big, join, patch, REFUSED } from './file.ts';
import { MARKS } from './not-audio.ts';

/** What a bait may name: a file with sound, a pipe that tells when it is opened, and a listening address. */
export interface Canaries {
  file: string;
  pipe: string;
  url: string;
}

function playlists({ file, pipe, url }: Canaries): [name: string, text: string][] {
  const data = `data:audio/wav;base64,${good('s16.wav').toString('base64')}`;
  const places = {
    file,
    pipe,
    url,
    data,
    'file URL': `file://${file}`,
    'relative path': `../../../../../../..${file}`,
  };
  const hls = (...lines: string[]) =>
    ['#EXTM3U', '#EXT-X-TARGETDURATION:2', ...lines, '#EXT-X-ENDLIST', ''].join('\n');
  return [
    ...Object.entries(places).flatMap(([what, place]): [string, string][] => [
      [`m3u8 of a ${what}`, hls('#EXTINF:2,', place)],
      [`m3u8 with a key in a ${what}`, hls(`#EXT-X-KEY:METHOD=AES-128,URI="${place}"`, '#EXTINF:2,', place)],
      [`m3u8 with a map in a ${what}`, hls(`#EXT-X-MAP:URI="${place}"`, '#EXTINF:2,', place)],
      [`m3u8 of variants in a ${what}`, `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${place}\n`],
      [`pls of a ${what}`, `[playlist]\nNumberOfEntries=1\nFile1=${place}\n`],
      [`ffconcat of a ${what}`, `ffconcat version 1.0\nfile '${place}'\n`],
      [
        `DASH of a ${what}`,
        `<?xml version="1.0"?><MPD><Period><AdaptationSet><Representation><BaseURL>${place}</BaseURL></Representation></AdaptationSet></Period></MPD>`,
      ],
      [`ASX of a ${what}`, `<asx version="3.0"><entry><ref href="${place}"/></entry></asx>`],
      [
        `XSPF of a ${what}`,
        `<playlist><trackList><track><location>${place}</location></track></trackList></playlist>`,
      ],
      [`cue sheet of a ${what}`, `FILE "${place}" WAVE\n  TRACK 01 AUDIO\n    INDEX 01 00:00:00\n`],
    ]),
    ['a list of addresses', `${url}\n${file}\n`],
    [
      'ffconcat with options',
      `ffconcat version 1.0\nfile 'x'\noption protocol_whitelist file,http,tcp\nfile '${url}'\n`,
    ],
    ['a protocol of ffmpeg', `concat:${file}|${file}`],
    ['another protocol of ffmpeg', `subfile,,start,0,end,0,,:${file}`],
    [
      'SDP',
      `v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio ${new URL(url).port} RTP/AVP 0\n`,
    ],
  ];
}

const box = (kind: string, ...body: (Uint8Array | string)[]) => {
  const content = join(...body);
  return join(big(content.length + 8, 4), kind, content);
};

/** QuickTime movies that say that their media is elsewhere. */
function movies({ file, url, pipe }: Canaries): BadFile[] {
  const movie = good('a.mov');
  const places = { file, pipe, 'file URL': `file://${file}`, address: url };
  return Object.entries(places).flatMap(([what, place]): BadFile[] => {
    const reference = box('rdrf', big(0, 4), 'url ', big(place.length + 1, 4), place, '\0');
    const elsewhere = box('url ', big(0, 4), place, '\0');
    return [
      {
        name: `a reference movie to a ${what}`,
        bytes: join(box('ftyp', 'qt  ', big(0, 4)), box('moov', box('rmra', box('rmda', reference)))),
        expected: REFUSED,
      },
      {
        name: `a movie with its media in a ${what}`,
        bytes: patch(movie, 'dref', 12, elsewhere),
        expected: ANY,
      },
    ];
  });
}

/** Names that a form may give to a file; only the content counts. */
function names({ file, url }: Canaries): BadFile[] {
  const sent = {
    'a path': file,
    'an address': url,
    'a URL of a file': `file:${file}`,
    'a protocol of ffmpeg': `concat:${file}|${file}`,
    'a path upwards': '../../../../etc/passwd',
    'an encoded path': '%2e%2e%2fetc%2fpasswd',
    'a pipe': 'pipe:0',
    'a dash': '-',
    'an option': '-i',
    'a device': '/dev/stdin',
    'a playlist': 'a.m3u8',
    'a concat script': 'a.ffconcat',
    'a reversed name': '\u202egpj.wav',
    'a name of 5,000 characters': `${'a'.repeat(5000)}.wav`,
  };
  const bytes = good('u8.wav');
  return [
    { name: 'sound under a name that ends early', bytes, expected: 'invalid_form', sentAs: 'a\0b.wav' },
    { name: 'sound under the name of a folder', bytes, expected: 'missing_file', sentAs: '.' },
    ...Object.entries(sent).flatMap(([what, sentAs]): BadFile[] => [
      { name: `sound under ${what}`, bytes, expected: 'speech', sentAs },
      { name: `sound for ffmpeg under ${what}`, bytes: good('a.au'), expected: 'speech', sentAs },
      { name: `text under ${what}`, bytes: Buffer.from(file), expected: 'unsupported_format', sentAs },
    ]),
  ];
}

export function baits(canaries: Canaries): BadFile[] {
  const lists = playlists(canaries);
  return [
    ...lists.map(
      ([name, text]): BadFile => ({ name, bytes: Buffer.from(text), expected: 'unsupported_format' }),
    ),
    ...Object.entries(MARKS).flatMap(([container, mark], i) =>
      [lists[i % lists.length], lists[(7 * i + 3) % lists.length]].flatMap((list): BadFile[] =>
        list === undefined
          ? []
          : [
              {
                name: `${list[0]} behind the beginning of ${container}`,
                bytes: join(mark, list[1]),
                expected: container === 'amr' ? ANY : REFUSED,
              },
            ],
      ),
    ),
    ...movies(canaries),
    ...names(canaries),
  ];
}
