/**
 * What the multipart forms of the gateway may hold. The form parser makes arrays and objects of the brackets in a
 * name: without limits one short name becomes an array of millions of places, or thousands of objects in one another.
 */
import { excerpt, GatewayError } from '../errors.ts';

/** No form here has other names than `name`, `name[]`, `name[7]` and `name[member]`. */
const NAMES = { fieldNameSize: 100, fieldNestingDepth: 1, fieldArrayIndexLimit: 99 };

/** Counts, but `fieldNameSize` in characters and `fieldSize` in bytes. A part is a field or a file. */
export const FORM_LIMITS = {
  /**
   * A list of 100 keywords beside all other fields, and some that only other servers know; a prompt of 64 KiB. Of the
   * files one is kept, the others are read past as other unknown fields are.
   */
  transcription: { ...NAMES, files: 16, fields: 128, parts: 144, fieldSize: 64 * 1024 },
  admin: { ...NAMES, files: 0, fields: 8, parts: 8, fieldSize: 1024 },
};

export type FormLimits = (typeof FORM_LIMITS)[keyof typeof FORM_LIMITS];

/** The limit that a code of the parser is about. */
const LIMIT_OF: Readonly<Record<string, keyof FormLimits>> = {
  LIMIT_FIELD_KEY: 'fieldNameSize',
  LIMIT_FIELD_NESTING: 'fieldNestingDepth',
  LIMIT_FIELD_ARRAY_INDEX: 'fieldArrayIndexLimit',
  LIMIT_FILE_COUNT: 'files',
  LIMIT_FIELD_COUNT: 'fields',
  LIMIT_PART_COUNT: 'parts',
};

/**
 * @param error what a form parser raised about the form
 * @returns malformed, with the field at fault and the limit: `invalid_value` for a long value, else `invalid_form`
 */
export function formRefusal(error: unknown, limits: FormLimits): GatewayError {
  const { message, code = '', field } = error as Error & { code?: string; field?: string };
  const name = field === undefined ? undefined : excerpt(field);
  const param = name === undefined ? {} : { param: name };
  if (code === 'LIMIT_FIELD_VALUE') {
    const expected = `Expected at most ${limits.fieldSize} bytes`;
    return new GatewayError('invalid_value', { field: name ?? '', value: 'that long', expected }, param);
  }
  const limit = LIMIT_OF[code];
  const why = limit === undefined ? excerpt(message, 200) : `${message} (at most ${limits[limit]})`;
  return new GatewayError('invalid_form', { why }, param);
}
