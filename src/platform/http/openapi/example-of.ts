import { isObject, type Schema } from './schema-walk.ts';

const exampleUuid = '01a1dfae-c3a5-7000-8007-f35eedc32390';
const exampleTime = '2026-02-20T10:30:00.000+00:00';

/**
 * An example of a schema, composed of the examples of its parts. Optional fields are left out unless they have an
 * example of their own, and so are values that may be null. Undefined if a part without a default has no example.
 */
export function exampleOf(schema: Schema): unknown {
  if (Array.isArray(schema.examples)) return schema.examples[0];
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if ('default' in schema) return schema.default;
  const variants = schema.anyOf ?? schema.oneOf;
  // Beside a type they only say which fields go together.
  if (schema.type === undefined && Array.isArray(variants))
    return exampleOfVariants(variants.filter(isObject));
  switch (schema.type) {
    case 'object':
      return exampleOfObject(schema);
    case 'array':
      return isObject(schema.items) ? wrap(exampleOf(schema.items)) : [];
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    case 'null':
      return null;
    case 'string':
      return exampleOfText(schema);
    default:
      return null;
  }
}

/** Whether somebody wrote one: an optional field is shown only then. */
export function hasOwnExample(schema: Schema): boolean {
  return Array.isArray(schema.examples);
}

function exampleOfVariants(variants: readonly Schema[]): unknown {
  const first = variants.find(({ type }) => type !== 'null');
  if (first === undefined) return null;
  const isNullable = variants.some(({ type }) => type === 'null');
  return isNullable && !hasOwnExample(first) ? null : exampleOf(first);
}

function exampleOfObject({ properties, required }: Schema): unknown {
  if (!isObject(properties)) return {};
  const isShown = (name: string, field: Schema): boolean =>
    (Array.isArray(required) && required.includes(name)) || hasOwnExample(field);
  const fields = Object.entries(properties)
    .filter((entry): entry is [string, Schema] => isObject(entry[1]))
    .filter(([name, field]) => isShown(name, field))
    .map(([name, field]) => [name, exampleOf(field)] as const);
  return fields.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(fields);
}

function exampleOfText({ format }: Schema): string | undefined {
  if (format === 'uuid') return exampleUuid;
  return format === 'date-time' ? exampleTime : undefined;
}

function wrap(example: unknown): readonly unknown[] | undefined {
  return example === undefined ? undefined : [example];
}
