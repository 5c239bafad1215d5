/** Writes segments as SubRip, WebVTT and text, character for character as the gateway's own answers. */

export function toSrt(segments) {
  return segments
    .map(
      ({ start, end, text, speaker }, i) =>
        `${i + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${cueText(spoken(text, speaker))}\n\n`,
    )
    .join('');
}

export function toVtt(segments) {
  const cues = segments.map(({ start, end, text, speaker }) => {
    const voice = speaker === undefined ? '' : `<v ${escapeVtt(speaker)}>`;
    return `${clock(start, '.')} --> ${clock(end, '.')}\n${voice}${escapeVtt(text)}\n\n`;
  });
  return `WEBVTT\n\n${cues.join('')}`;
}

/** The text in one piece, or with a line for each change of the speaker. */
export function toText(segments) {
  const parts = [];
  for (const { speaker, text } of segments) {
    const last = parts.at(-1);
    if (last?.speaker === speaker && last !== undefined) last.text += text;
    else parts.push({ speaker, text });
  }
  return `${parts.map(({ speaker, text }) => spoken(text.trim(), speaker)).join('\n')}\n`;
}

const spoken = (text, speaker) => (speaker === undefined ? text : `${speaker}: ${text.trim()}`);

/** Formats a time for reading, as `0:03` or `1:02:03`. */
export function shortTime(sec) {
  const whole = Math.max(0, Math.floor(sec));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value) => String(value).padStart(2, '0');
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** A blank line or an arrow inside a cue would end it early. */
function cueText(text) {
  return text.replace(/\s+/g, ' ').replaceAll('-->', '->').trim();
}

function escapeVtt(text) {
  return cueText(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function clock(sec, mark) {
  const ms = Math.max(0, Math.round(sec * 1000));
  const pad = (value, width = 2) => String(value).padStart(width, '0');
  const [h, m, s] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, Math.floor(ms / 1000) % 60];
  return `${pad(h)}:${pad(m)}:${pad(s)}${mark}${pad(ms % 1000, 3)}`;
}
