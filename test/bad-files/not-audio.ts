/** Files that hold no audio, and files that are two things at once. */
import { readFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { folder, runFfmpeg, TONE } from '../audio-fixtures.ts';
import { good } from './cuts.ts';
import { ANY, type BadFile, join, little, type Outcome, REFUSED, randomBytes } from './file.ts';

/** A zip with one member (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT). */
function zip(name: string, content: Buffer): Buffer {
  const packed = deflateRawSync(content);
  const sizes = join(
    little(20, 2),
    [0, 0, 8, 0],
    Buffer.alloc(8),
    little(packed.length, 4),
    little(content.length, 4),
  );
  const local = join('PK\x03\x04', sizes, little(name.length, 2), little(0, 2), name, packed);
  const entry = join('PK\x01\x02', little(20, 2), sizes, little(name.length, 2), Buffer.alloc(16), name);
  const end = join(
    'PK\x05\x06',
    Buffer.alloc(4),
    [1, 0, 1, 0],
    little(entry.length, 4),
    little(local.length, 4),
    [0, 0],
  );
  return join(local, entry, end);
}

/** The beginnings of all containers that are recognized. */
export const MARKS: Record<string, string> = {
  wav: 'RIFF\xff\xff\xff\x7fWAVEfmt ',
  rifx: 'RIFX\0\0\0\0WAVE',
  rf64: 'RF64\xff\xff\xff\xffWAVEds64',
  bw64: 'BW64\xff\xff\xff\xffWAVE',
  flac: 'fLaC\0\0\0\x22',
  matroska: '\x1a\x45\xdf\xa3',
  aiff: 'FORM\0\0\x10\0AIFFCOMM',
  aifc: 'FORM\0\0\x10\0AIFC',
  w64: 'riff\x2e\x91\xcf\x11',
  caf: 'caff\0\x01\0\0desc',
  amr: '#!AMR\n',
  au: '.snd',
  avi: 'RIFF\0\0\x10\0AVI LIST',
  flv: 'FLV\x01\x04\0\0\0\x09',
  asf: '\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\0\xaa\0\x62\xce\x6c',
  'mpeg ps': '\0\0\x01\xba',
  'mpeg ts': `\x47${'\0'.repeat(187)}\x47${'\0'.repeat(187)}\x47`,
  ogg: 'OggS\0\x02',
  mp4: '\0\0\0\x18ftypM4A ',
  'mp4 of free space': '\0\0\0\x08wide',
  mp3: '\xff\xfb\x90\x64',
  adts: '\xff\xf1\x50\x80',
  id3: 'ID3\x04\0\0\0\0\0\0',
};

function pictures(): [string, Buffer][] {
  const video = ['-f', 'lavfi', '-i', 'testsrc=size=64x48:rate=5:duration=1', '-c:v', 'mpeg4'];
  const cases: [name: string, ...args: string[]][] = [
    ['mute.mp4', ...video],
    ['mute.mkv', ...video],
    ['mute.avi', ...video],
    ['mute.ts', ...video],
    ['mute.flv', '-f', 'lavfi', '-i', 'testsrc=size=64x48:rate=5:duration=1', '-c:v', 'flv'],
    ['mute.mpg', '-f', 'lavfi', '-i', 'testsrc=size=64x48:rate=25:duration=1', '-c:v', 'mpeg1video'],
  ];
  return cases.map(([name, ...args]) => {
    const path = joinPath(folder, name);
    runFfmpeg(...args, path);
    return [name, readFileSync(path)];
  });
}

/** Whole containers that hold a track and not one sample of it. */
function emptyTracks(): BadFile[] {
  const names = [
    'wav',
    'flac',
    'ogg',
    'mp3',
    'm4a',
    'mka',
    'aiff',
    'au',
    'caf',
    'w64',
    'wma',
    'ts',
    'avi',
    'flv',
  ];
  return names.map((name) => {
    const path = joinPath(folder, `none.${name}`);
    runFfmpeg('-f', 'lavfi', '-i', TONE, '-t', '0', '-ar', '44100', path);
    const bytes = readFileSync(path);
    return {
      name: `an empty track in ${name}`,
      bytes,
      expected: bytes.length === 0 ? 'empty_file' : REFUSED,
    };
  });
}

export function filesWithoutAudio(): BadFile[] {
  const html = '<!doctype html><title>x</title><audio src="file:///etc/passwd"></audio>'.repeat(20);
  const plain: [name: string, content: Uint8Array | string, expected?: Outcome | readonly Outcome[]][] = [
    ['nothing', '', 'empty_file'],
    ['one byte of zero', '\0'],
    ['one byte of 0xff', '\xff'],
    ['a megabyte of zeros', Buffer.alloc(1 << 20)],
    ['a megabyte of 0xff', Buffer.alloc(1 << 20, 0xff)],
    ['text', 'This is no audio at all. '.repeat(100)],
    ['text in UTF-16', Buffer.from('\ufeffThis is no audio at all. '.repeat(100), 'utf16le')],
    ['text that begins like mp4', 'The free encyclopedia '.repeat(100)],
    ['HTML', html],
    ['JSON', JSON.stringify({ audio: 'data:audio/wav;base64,UklGRg==' })],
    ['XML with an entity', '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'],
    ['a base64 of wav', good('u8.wav').toString('base64')],
    ['a zip of a wav', zip('a.wav', good('s16.wav'))],
    ['a zip of 16 MiB', zip('zeros', Buffer.alloc(16 << 20))],
    ['an ELF program', join('\x7fELF\x02\x01\x01', Buffer.alloc(500))],
    ['a PNG', join('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', Buffer.alloc(100))],
    ['a JPEG', join('\xff\xd8\xff\xe0\0\x10JFIF\0', Buffer.alloc(100))],
    ['a GIF', join('GIF89a', Buffer.alloc(100))],
    ['a PDF', '%PDF-1.7\n1 0 obj\n<<>>\nendobj\n'],
    ['a WebP', join('RIFF\x40\0\0\0WEBPVP8 ', Buffer.alloc(64))],
    ['a MIDI file', join('MThd\0\0\0\x06\0\x01\0\x01\0\x60', 'MTrk\0\0\0\x04\0\xff\x2f\0')],
    ['a shell script', '#!/bin/sh\ntouch /tmp/owned\n'],
    ['subtitles', '1\n00:00:00,000 --> 00:00:02,000\nHello\n'],
    ['metadata of ffmpeg', ';FFMETADATA1\ntitle=x\n'],
  ];
  return [
    ...plain.map(([name, content, expected = 'unsupported_format']) => ({
      name,
      bytes: join(content),
      expected,
    })),
    ...pictures().map(
      ([name, bytes]): BadFile => ({ name: `video alone: ${name}`, bytes, expected: 'no_audio_stream' }),
    ),
    ...emptyTracks(),
    ...Object.entries(MARKS).flatMap(([name, mark], seed): BadFile[] => [
      { name: `the beginning of ${name}`, bytes: join(mark), expected: REFUSED },
      { name: `the beginning of ${name} and zeros`, bytes: join(mark, Buffer.alloc(5000)), expected: ANY },
      {
        name: `the beginning of ${name} and noise`,
        bytes: join(mark, randomBytes(seed, 5000)),
        expected: ANY,
      },
    ]),
  ];
}

/** Each is read as one of the two, and never as both. */
export function polyglots(): BadFile[] {
  const names = ['s16.wav', 'low.mp3', 'a.flac', 'a.ogg', 'fast.m4a', 'a.webm', 'a.aiff', 'a.aac'];
  const html = Buffer.from('<html><script>fetch("http://127.0.0.1:1/")</script></html>'.repeat(50));
  const wav = good('s16.wav');
  return [
    ...names.flatMap((first, i) =>
      [1, 3, 4]
        .map((apart) => names[(i + apart) % names.length] ?? '')
        .map((second) => ({
          name: `${first}, then ${second}`,
          bytes: join(good(first), good(second)),
          expected: ANY,
        })),
    ),
    ...names.flatMap((name): BadFile[] => [
      { name: `${name}, then HTML`, bytes: join(good(name), html), expected: 'speech' },
      { name: `${name}, then a zip`, bytes: join(good(name), zip('x', html)), expected: 'speech' },
      { name: `HTML, then ${name}`, bytes: join(html, good(name)), expected: 'unsupported_format' },
      {
        name: `a zip, then ${name}`,
        bytes: join(zip('x', html), good(name)),
        expected: 'unsupported_format',
      },
    ]),
    { name: 'a wav in the free space of an mp4', bytes: join('\0\0\0\x08free', wav), expected: REFUSED },
    {
      name: 'an mp3 in the samples of a wav',
      bytes: join(wav.subarray(0, 44), good('a.mp3')),
      expected: ANY,
    },
    {
      name: 'a wav in the picture of a flac',
      bytes: join(good('a.flac').subarray(0, 42), wav),
      expected: ANY,
    },
  ];
}
