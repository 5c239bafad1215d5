/** `81.8 MB` */
export function shortSize(bytes) {
  const units = ['bytes', 'KB', 'MB', 'GB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1000 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** `12.1 MB of 81.8 MB`, or only the first where the whole is not known. */
export const sizeOf = (bytes, total) =>
  total > 0 ? `${shortSize(bytes)} of ${shortSize(total)}` : shortSize(bytes);
