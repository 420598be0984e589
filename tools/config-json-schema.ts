import { Type, type TSchema } from 'typebox';
import type { Node } from '../src/config/reason-against.ts';
import { schema } from '../src/config/schema.ts';

type Json = Readonly<Record<string, unknown>>;

/** What JSON Schema knows; the rest of a node is for us. */
const KEYWORDS = [
  'type',
  'const',
  'description',
  'default',
  'examples',
  'pattern',
  'minimum',
  'maximum',
  'maxLength',
  'minItems',
  'maxItems',
] as const;

/**
 * The schema of a configuration file for editors. Any key may be null, and none is required outside of lists, because
 * another file or an environment variable may set it. What a pattern cannot say is only checked at start.
 */
export function configJsonSchema(): Json {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Redrive configuration',
    ...jsonSchemaOf(schema, false),
    default: undefined,
  };
}

function jsonSchemaOf(node: TSchema & Node, isItem: boolean): Json {
  const known = node as Json;
  const entries = KEYWORDS.flatMap((key) => (known[key] === undefined ? [] : [[key, known[key]]]));
  const isSection = Type.IsObject(node);
  return {
    ...Object.fromEntries(entries.filter(([key]) => !(isSection && key === 'default'))),
    ...(node.what === undefined || Type.IsEnum(node) ? {} : { errorMessage: `must be ${node.what}` }),
    ...partsOf(node, isItem),
  };
}

function partsOf(node: TSchema & Node, isItem: boolean): Json {
  if (Type.IsEnum(node)) return { enum: node.enum };
  if (Type.IsUnion(node)) return { anyOf: node.anyOf.map((each) => jsonSchemaOf(each, isItem)) };
  if (Type.IsArray(node)) return { items: jsonSchemaOf(node.items, true) };
  if (Type.IsRecord(node)) {
    const patterns = Object.entries(node.patternProperties).map(
      ([pattern, entry]) => [pattern, orNull(jsonSchemaOf(entry, false))] as const,
    );
    return { patternProperties: Object.fromEntries(patterns), additionalProperties: false };
  }
  if (!Type.IsObject(node)) return {};
  const properties = Object.entries(node.properties as Readonly<Record<string, TSchema & Node>>);
  const required = properties.flatMap(([key, each]) =>
    each.default === undefined && !Type.IsOptional(each) ? [key] : [],
  );
  return {
    properties: Object.fromEntries(
      properties.map(([key, each]) => [key, orNull(jsonSchemaOf(each, isItem))]),
    ),
    additionalProperties: false,
    ...(isItem && required.length > 0 ? { required } : {}),
  };
}

function orNull(schema: Json): Json {
  if ('const' in schema) return schema;
  if (Array.isArray(schema['enum'])) return { ...schema, enum: [...(schema['enum'] as unknown[]), null] };
  if (Array.isArray(schema['anyOf']))
    return { ...schema, anyOf: [...(schema['anyOf'] as unknown[]), { type: 'null' }] };
  return 'type' in schema ? { ...schema, type: [schema['type'], 'null'] } : schema;
}
