/** Buttons that ask something of the gateway and put its answer in the place of a section. */
import { type Html, html } from './html.ts';

export interface Action {
  label: string;
  /** For people who do not see what the button stands beside. */
  fullLabel?: string;
  post: string;
  section: string;
  /** Buttons with another key are other buttons: a confirmation for one never acts for the other. */
  key: string;
  className?: string;
  values?: Readonly<Record<string, string>>;
  /** Asked before. */
  confirm?: string;
}

export function button(action: Action): Html {
  const { label, fullLabel, key, className = 'small' } = action;
  return html`<button type="button" class="${className}" data-key="${key}"
    aria-label="${fullLabel ?? label}" ${request(action)}>${label}</button>`;
}

/** The attributes of whatever makes the request. A second press while the first is under way is dropped. */
export function request({ post, section, values, confirm, label }: Omit<Action, 'key'>): Html {
  return html`hx-post="${post}" hx-target="#${section}" hx-sync="#${section}:drop"${
    values && html` hx-vals="${JSON.stringify(values)}" hx-encoding="multipart/form-data"`
  }${confirm && html` hx-confirm="${confirm}" data-confirm-label="${label}"`}`;
}

/** What became of it. Stays for a while although the section is drawn anew. */
export function outcome(text: string | null): Html | null {
  return text === null ? null : html`<p class="notice" role="status" data-linger>${text}</p>`;
}
