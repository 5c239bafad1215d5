/**
 * The limits of multipart forms. The form parser turns brackets in a name into arrays and objects, so without limits
 * one short name makes an array of millions of items, or thousands of nested objects.
 */
import { excerpt, GatewayError } from '../errors.ts';

/** All names in these forms look like `name`, `name[]`, `name[7]` or `name[member]`. */
const NAMES = { fieldNameSize: 100, fieldNestingDepth: 1, fieldArrayIndexLimit: 99 };

/** `fieldNameSize` is in characters, `fieldSize` in bytes, and the others are counts. A part is a field or a file. */
export const FORM_LIMITS = {
  /**
   * A form has room for a list of 100 keywords, all other fields, some fields that only other servers know, and a
   * prompt of 64 KiB. One file is kept; the others are skipped, as unknown fields are.
   */
  transcription: { ...NAMES, files: 16, fields: 128, parts: 144, fieldSize: 64 * 1024 },
  admin: { ...NAMES, files: 0, fields: 8, parts: 8, fieldSize: 1024 },
};

export type FormLimits = (typeof FORM_LIMITS)[keyof typeof FORM_LIMITS];

/** The limit that each error code of the parser is about. */
const LIMIT_OF: Readonly<Record<string, keyof FormLimits>> = {
  LIMIT_FIELD_KEY: 'fieldNameSize',
  LIMIT_FIELD_NESTING: 'fieldNestingDepth',
  LIMIT_FIELD_ARRAY_INDEX: 'fieldArrayIndexLimit',
  LIMIT_FILE_COUNT: 'files',
  LIMIT_FIELD_COUNT: 'fields',
  LIMIT_PART_COUNT: 'parts',
};

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
    const expected = `Expected at most ${limits.fieldSize} bytes`;
    return new GatewayError('invalid_value', { field: name ?? '', value: 'that long', expected }, param);
  }
  const limit = LIMIT_OF[code];
  const why = limit === undefined ? excerpt(message, 200) : `${message} (at most ${limits[limit]})`;
  return new GatewayError('invalid_form', { why }, param);
}
