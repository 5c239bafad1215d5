/** The parts of pictures that are drawn as SVG, on a white ground of their own so that a dark page does not hide them. */

export const WIDTH = 760;
export const COLORS = ['#1d4ed8', '#b45309', '#047857', '#7c3aed'];

export function picture(title: string, height: number, parts: readonly string[]): string {
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#1f2937">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    text(WIDTH / 2, 26, title, 'text-anchor="middle" font-size="16" font-weight="bold"'),
    ...parts,
    '</svg>',
  ].join('\n')}\n`;
}

export function rectangle(x: number, y: number, width: number, height: number, color?: string): string {
  return `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${color}"/>`;
}

export function line(x1: number, y1: number, x2: number, y2: number, style: string): string {
  return `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" ${style}/>`;
}

export function text(x: number, y: number, words: string, style = ''): string {
  return `<text x="${round(x)}" y="${round(y)}" ${style}>${escaped(words)}</text>`;
}

export const round = (value: number) => Math.round(value * 10) / 10;

const escaped = (words: string) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
