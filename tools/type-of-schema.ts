/** TypeScript types of the schemas in the OpenAPI document. */

export type JsonSchema = Readonly<{
  $ref?: string;
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly JsonSchema[];
  oneOf?: readonly JsonSchema[];
  items?: JsonSchema;
  properties?: Readonly<Record<string, JsonSchema>>;
  additionalProperties?: boolean | JsonSchema;
  required?: readonly string[];
  description?: string;
}>;

/** `input`: what a caller writes, where an optional field may be given as undefined. */
export type Use = 'input' | 'answer';

export function typeOf(schema: JsonSchema, use: Use): string {
  const { $ref, type, anyOf, oneOf, items } = schema;
  if ($ref !== undefined) return nameOf($ref);
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  const variants = anyOf ?? oneOf;
  // Beside a type they only say which fields go together.
  if (type === undefined && variants !== undefined)
    return variants.map((variant) => typeOf(variant, use)).join(' | ');
  switch (type) {
    case 'object':
      return objectTypeOf(schema, use);
    case 'array':
      return `readonly (${items === undefined ? 'unknown' : typeOf(items, use)})[]`;
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
    case 'null':
      return type;
    case undefined:
      return 'unknown';
    default:
      throw new Error(`no TypeScript type for the type ${type}`);
  }
}

export type Field = Readonly<{ name: string; schema: JsonSchema; isRequired: boolean }>;

export function fieldsOf({ properties = {}, required = [] }: JsonSchema): readonly Field[] {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    schema,
    isRequired: required.includes(name),
  }));
}

export function recordType(fields: readonly Field[], use: Use): string {
  const lines = fields.map(({ name, schema, isRequired }) => {
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    const type = typeOf(schema, use);
    const missing = isRequired || use === 'answer' || type === 'unknown' ? '' : ' | undefined';
    return `${commentOf(schema.description)}${key}${isRequired ? '' : '?'}: ${type}${missing};`;
  });
  return `Readonly<{\n${lines.join('\n')}\n}>`;
}

export function commentOf(text: string | undefined): string {
  return text === undefined ? '' : `/** ${text.replaceAll('*/', '* /')} */\n`;
}

function objectTypeOf(schema: JsonSchema, use: Use): string {
  const { additionalProperties: rest } = schema;
  const fields = fieldsOf(schema);
  if (fields.length > 0) return recordType(fields, use);
  if (rest === false) return 'Readonly<Record<string, never>>';
  return `Readonly<Record<string, ${typeof rest === 'object' ? typeOf(rest, use) : 'unknown'}>>`;
}

function nameOf(ref: string): string {
  const [, name] = /^#\/components\/schemas\/(\w+)$/.exec(ref) ?? [];
  if (name === undefined) throw new Error(`cannot follow ${ref}`);
  return name;
}
