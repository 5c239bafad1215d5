/** Runs in the page and lists the texts whose contrast with their background is below 4.5 (WCAG 2.2, AA). */
(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (color) => {
    const [r, g, b] = color.map((v) =>
      v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    if (element === null) return [255, 255, 255, 255];
    const color = rgba(getComputedStyle(element).backgroundColor);
    return color[3] === 255 ? color : behind(element.parentElement);
  };
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const text = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent.trim());
    if (text.join('') === '' || element.getClientRects().length === 0) continue;
    const ink = luminance(rgba(getComputedStyle(element).color));
    const ground = luminance(behind(element));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${element.tagName} ${text.join(' ')}`);
  }
  return found;
})();
