/** Packs files into one zip. The packer is fetched when the first zip is made. */

/** Names that Windows keeps for devices, whatever comes after their dot. */
const DEVICES = /^(con|prn|aux|nul|com\d|lpt\d)(?=\.|$)/i;
/** The bytes that a name may have everywhere, less an extension and a number. */
const MOST_BYTES = 200;

/** @param files `{name, blob}[]` @returns Promise<Blob> */
export async function toZip(files) {
  const { zipSync } = await import('../vendor/fflate.js');
  const names = safeNames(files.map(({ name }) => name));
  const entries = await Promise.all(
    files.map(async ({ blob }, i) => [names[i], new Uint8Array(await blob.arrayBuffer())]),
  );
  return new Blob([zipSync(Object.fromEntries(entries))], { type: 'application/zip' });
}

/** Names that every system can unpack, unique even where case does not matter. */
function safeNames(names) {
  const taken = new Set();
  return names.map((name) => {
    const dot = name.lastIndexOf('.');
    const stem = safeStem(name.slice(0, dot));
    for (let n = 1; ; n++) {
      const tried = `${stem}${n === 1 ? '' : ` (${n})`}${name.slice(dot)}`;
      if (taken.has(tried.toLowerCase())) continue;
      taken.add(tried.toLowerCase());
      return tried;
    }
  });
}

function safeStem(stem) {
  const plain = stem
    .normalize('NFC')
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what has to go
    .replace(/[\u0000-\u001f\u007f<>:"/\\|?*]/g, '_')
    .replace(DEVICES, '_$1')
    .replace(/^\.+/, '_');
  let short = '';
  for (const letter of plain) {
    if (new TextEncoder().encode(short + letter).length > MOST_BYTES) break;
    short += letter;
  }
  return short.replace(/[. ]+$/, '') || 'file';
}
