/** Explains why a multipart form is refused. */
import { excerpt, GatewayError } from '../../errors.ts';
import { BUDGETS, type Budgets } from '../../limits/budgets.ts';

export type FormLimits = Budgets['form']['transcription'] & Partial<Budgets['form']['admin']>;

/** The limit that each error code of the parser is about. */
const LIMIT_OF: Readonly<Record<string, keyof FormLimits>> = {
  LIMIT_FIELD_KEY: 'fieldNameSize',
  LIMIT_FIELD_NESTING: 'fieldNestingDepth',
  LIMIT_FIELD_ARRAY_INDEX: 'fieldArrayIndexLimit',
  LIMIT_FILE_COUNT: 'files',
  LIMIT_FIELD_COUNT: 'fields',
  LIMIT_PART_COUNT: 'parts',
};

/** The most bytes of a part with the field. References of speakers are sounds, and a text to align may be a long one. */
export function fieldSizeOf(name: string, limits: FormLimits): number {
  if (name === 'text') return Math.max(limits.fieldSize, BUDGETS.alignment.textBytes);
  return name === 'known_speaker_references' ? BUDGETS.speakers.referenceBytes : limits.fieldSize;
}

/**
 * @param field the part that should hold the file
 * @param other the part that holds a file instead
 */
export function missingFile(field: string, other: string | undefined): GatewayError {
  const instead = other === undefined ? '' : `; one came as "${excerpt(other)}"`;
  return new GatewayError('missing_file', { field, other: instead }, { param: field });
}

/**
 * The error for a form that breaks a limit. It names the field at fault and the limit.
 * @param error the error that the form parser raised
 * @returns `invalid_value` for a value that is too long, else `invalid_form`
 */
export function formRefusal(error: unknown, limits: FormLimits): GatewayError {
  const { message, code = '', field } = error as Error & { code?: string; field?: string };
  const name = field === undefined ? undefined : excerpt(field);
  const param = name === undefined ? {} : { param: name };
  if (code === 'LIMIT_FIELD_VALUE') {
    const expected = `Expected at most ${fieldSizeOf(field ?? '', limits)} bytes`;
    return new GatewayError('invalid_value', { field: name ?? '', value: 'that long', expected }, param);
  }
  const limit = LIMIT_OF[code];
  const why = limit === undefined ? excerpt(message, 200) : `${message} (at most ${limits[limit]})`;
  return new GatewayError('invalid_form', { why }, param);
}
