import * as fc from 'fast-check';
import { resolve } from './openapi-document.ts';

type Schema = Readonly<{
  type?: string | readonly string[];
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  allOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  pattern?: string;
  format?: string;
  examples?: readonly unknown[];
  default?: unknown;
}>;

/** Lists and texts stay short: other tests send large ones. */
const mostItems = 3;
const mostCharacters = 40;

/** Values that are valid by the schema, or nearly: what a schema cannot say is up to the server. */
export function arbitraryOf(schema: object): fc.Arbitrary<unknown> {
  const whole = resolve(schema) as Schema;
  const { examples = [], default: preset } = whole;
  const known = [...examples, ...(preset === undefined ? [] : [preset])];
  const any = byShape(whole);
  return known.length === 0 ? any : fc.oneof(any, fc.constantFrom(...known));
}

function byShape(schema: Schema): fc.Arbitrary<unknown> {
  const choices = schema.anyOf ?? schema.oneOf;
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (choices !== undefined) return fc.oneof(...choices.map(arbitraryOf));
  if (schema.allOf !== undefined) return arbitraryOf(Object.assign({}, ...schema.allOf.map(resolve)));
  const types = [schema.type ?? 'any'].flat();
  return fc.oneof(...types.map((type) => byType(type, schema)));
}

function byType(type: string, schema: Schema): fc.Arbitrary<unknown> {
  switch (type) {
    case 'null':
      return fc.constant(null);
    case 'boolean':
      return fc.boolean();
    case 'integer':
      return integers(schema);
    case 'number':
      return fc.oneof(
        integers(schema),
        fc.double({ min: schema.minimum ?? -1e6, max: schema.maximum ?? 1e6, noNaN: true }),
      );
    case 'string':
      return texts(schema);
    case 'array':
      return fc.array(schema.items === undefined ? fc.jsonValue() : arbitraryOf(schema.items), {
        minLength: Math.min(schema.minItems ?? 0, mostItems),
        maxLength: Math.min(schema.maxItems ?? mostItems, mostItems),
      });
    case 'object':
      return objects(schema);
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function integers({ minimum = -1000, maximum = Number.MAX_SAFE_INTEGER }: Schema): fc.Arbitrary<number> {
  const [min, max] = [Math.ceil(minimum), Math.floor(Math.max(minimum, maximum))];
  return fc.oneof(
    fc.integer({ min, max: Math.min(max, min + 100) }),
    fc.maxSafeInteger().map((any) => Math.min(Math.max(any, min), max)),
  );
}

function texts({ format, pattern, minLength = 0, maxLength = mostCharacters }: Schema): fc.Arbitrary<string> {
  if (format === 'uuid') return fc.uuid();
  if (format === 'date-time')
    return fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) })
      .map((date) => date.toISOString());
  if (pattern !== undefined && pattern !== String.raw`\S`) return fc.stringMatching(new RegExp(pattern));
  return fc.string({
    unit: 'grapheme',
    minLength: Math.min(minLength, mostCharacters),
    maxLength: Math.min(maxLength, mostCharacters),
  });
}

function objects({ properties = {}, required = [], additionalProperties }: Schema): fc.Arbitrary<unknown> {
  const fields = fc.record(
    Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, arbitraryOf(inner)])),
    { requiredKeys: required.filter((name) => name in properties) },
  );
  if (Object.keys(properties).length > 0 || additionalProperties === false) return fields;
  return fc.dictionary(fc.string({ minLength: 1, maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), {
    maxKeys: 3,
  });
}

/** What no schema allows, or what breaks what is behind it. */
export const hostileValues: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(
    null, '', ' ', 0, -1, -0, 0.1, 1e308, 2 ** 53, true, [], {}, [[]], [null], '\0', 'a\0b', '\ud800', '\u202e',
    "' OR 1=1 --", '${jndi:ldap://x}', '{{7*7}}', '../../etc/passwd', '9'.repeat(40), 'NaN', 'Infinity', '-0',
    '0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999999Z', '2026-02-30T00:00:00Z', 'x'.repeat(3000),
    { __proto__: null, constructor: 1 }, '%', '%00', '*', '**', '\u001b[2J',
  ), // prettier-ignore
  fc.jsonValue({ maxDepth: 4 }),
);

/** A valid value with one part replaced by a hostile one, dropped, or with a part that does not belong there. */
export function broken(valid: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc
    .tuple(valid, hostileValues, fc.nat(), fc.constantFrom('replace', 'drop', 'add'))
    .map(([value, hostile, at, how]) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return hostile;
      const entries = Object.entries(value);
      const index = entries.length === 0 ? 0 : at % entries.length;
      const [name = 'x'] = entries[index] ?? [];
      if (how === 'drop') return Object.fromEntries(entries.toSpliced(index, 1));
      return { ...value, [how === 'add' ? `x${at % 10}` : name]: hostile };
    });
}
