/** What a visitor has set is remembered in this browser, which may refuse to. */

/**
 * @param key under which they lie in the browser's storage
 * @param fields inputs, selects and text areas, each with an id; they get the values of the last visit
 */
export function rememberSettings(key, fields) {
  const saved = readSetting(key) ?? {};
  if (keepsAnything()) for (const field of fields) restore(field, saved[field.id]);
  const save = () => {
    if (!keepsAnything()) return;
    writeSetting(key, Object.fromEntries(fields.map((field) => [field.id, settingOf(field)])));
  };
  for (const field of fields) field.addEventListener('input', save);
  addEventListener(KEEPING, () => (keepsAnything() ? save() : writeSetting(key, null)));
}

const KEEPING = 'voxgate-keeping';

/** False where the visitor wants nothing of a visit to be kept. */
export const keepsAnything = () => readSetting(KEEPING) !== false;

export function keepAnything(isKept) {
  writeSetting(KEEPING, isKept ? null : false);
  dispatchEvent(new Event(KEEPING));
}

const settingOf = (field) => (field.type === 'checkbox' ? field.checked : field.value);

function restore(field, value) {
  if (field.type === 'checkbox') {
    if (typeof value === 'boolean') field.checked = value;
    return;
  }
  if (typeof value !== 'string') return;
  // The gateway lists models and languages later; such a list keeps the choice that it finds, where it has it.
  if (field.options !== undefined && ![...field.options].some((option) => option.value === value))
    field.append(new Option(value, value));
  field.value = value;
}

function readSetting(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

/** Null removes it. */
function writeSetting(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Refused, or full.
  }
}
