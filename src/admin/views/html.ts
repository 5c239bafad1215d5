/** HTML from templates. Every value is escaped unless it is `Html` itself. Attribute values need double quotes. */

class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString(): string {
    return this.text;
  }
}

export type { Html };

/** Null, undefined and false produce no text. */
type Child = Html | string | number | null | undefined | false | readonly Child[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export function html(strings: TemplateStringsArray, ...values: Child[]): Html {
  return new Html(strings.reduce((text, next, i) => text + toText(values[i - 1]) + next));
}

function toText(value: Child): string {
  if (value === null || value === undefined || value === false) return '';
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(toText).join('');
  return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
