/** The part of a JSON schema that decides the type of a text from the URL. */
type TextSchema = Readonly<{
  type?: unknown;
  items?: TextSchema;
  properties?: Readonly<Record<string, TextSchema>>;
}>;

/**
 * Converts texts from the query or the path to the type in their schema. A number must be a plain decimal: no exponent,
 * no hexadecimal, no blanks, no leading zeros, exact as a double. Other texts stay texts, and validation rejects them.
 */
export function coerceTexts(input: unknown, schema: TextSchema): unknown {
  if (typeof input !== 'object' || input === null || schema.properties === undefined) return input;
  const { properties } = schema;
  return Object.fromEntries(
    Object.entries(input).map(([key, value]) => [
      key,
      Object.hasOwn(properties, key) ? coerceValue(value, properties[key] ?? {}) : value,
    ]),
  );
}

function coerceValue(value: unknown, schema: TextSchema): unknown {
  if (schema.type === 'array') {
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    return items.map((item) => coerceValue(item, schema.items ?? {}));
  }
  if (typeof value !== 'string') return value;
  switch (schema.type) {
    case 'integer':
      return coerceNumber(value, /^(?:0|-?[1-9]\d*)$/);
    case 'number':
      return coerceNumber(value, /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/);
    case 'boolean':
      return value === 'true' ? true : value === 'false' ? false : value;
    default:
      return value;
  }
}

function coerceNumber(text: string, form: RegExp): number | string {
  const number = Number(text);
  return form.test(text) && Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : text;
}
