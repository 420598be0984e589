/** A schema of the document, or any object in it. */
export type Schema = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Replaces every object of the document, the inner ones first. */
export function mapObjects(value: unknown, replace: (found: Schema) => Schema): unknown {
  if (Array.isArray(value)) return value.map((item) => mapObjects(item, replace));
  if (!isObject(value)) return value;
  // Examples are data: a field of theirs may have the name of a keyword.
  const mapped = Object.entries(value).map(
    ([key, inner]) =>
      [key, key === 'example' || key === 'examples' ? inner : mapObjects(inner, replace)] as const,
  );
  return replace(Object.fromEntries(mapped));
}
