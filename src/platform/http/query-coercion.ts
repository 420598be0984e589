/** As much of a JSON schema as decides how a text from a URL is read. */
type TextSchema = Readonly<{
  type?: unknown;
  items?: TextSchema;
  properties?: Readonly<Record<string, TextSchema>>;
}>;

/**
 * Gives texts from a query string or a path the type that their schema names. A number is a plain decimal and
 * nothing else: no exponent, no hexadecimal, no blanks, no leading zeros, nothing that a double would round.
 * What does not read so stays a text, and the validation says what is wrong with it.
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
