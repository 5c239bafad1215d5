/** Buttons that send a request to the gateway and replace a section of the page with its answer. */
import { type Html, html } from './html.ts';

export interface Action {
  label: string;
  /** The label for people who do not see what is beside the button. */
  fullLabel?: string;
  post: string;
  section: string;
  /** Identifies the button, so that a confirmation of one button never acts for another. */
  key: string;
  className?: string;
  values?: Readonly<Record<string, string>>;
  /** The question that must be confirmed first. */
  confirm?: string;
}

export function button(action: Action): Html {
  const { label, fullLabel, key, className = 'small' } = action;
  return html`<button type="button" class="${className}" data-key="${key}"
    aria-label="${fullLabel ?? label}" ${request(action)}>${label}</button>`;
}

/** The attributes of an element that sends the request. A second press is ignored while the first is under way. */
export function request({ post, section, values, confirm, label }: Omit<Action, 'key'>): Html {
  return html`hx-post="${post}" hx-target="#${section}" hx-sync="#${section}:drop"${
    values && html` hx-vals="${JSON.stringify(values)}" hx-encoding="multipart/form-data"`
  }${confirm && html` hx-confirm="${confirm}" data-confirm-label="${label}"`}`;
}

/** The result of an action. It stays on the page for a while, although the section is rendered again. */
export function outcome(text: string | null): Html | null {
  return text === null ? null : html`<p class="notice" role="status" data-linger>${text}</p>`;
}
