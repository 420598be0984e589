import type { JsonBody } from '../../kernel/http-answer.ts';

/**
 * A field of a JSON answer as text; dots reach into objects, as in `error.code`. Undefined unless it is a string, a
 * number or a boolean. Numbers are returned as written: an order number above 2^53 would lose digits otherwise.
 */
export function fieldText(body: JsonBody, field: string): string | undefined {
  const value = fieldOf(body.value, field);
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number') return undefined;
  if (Number.isSafeInteger(value)) return String(value);
  const written = fieldOf(parseKeepingNumbers(body.text), field);
  return typeof written === 'string' ? written : String(value);
}

function fieldOf(value: unknown, field: string): unknown {
  const whole = own(value, field);
  const dot = field.indexOf('.');
  if (whole !== undefined || dot < 0) return whole;
  return fieldOf(own(value, field.slice(0, dot)), field.slice(dot + 1));
}

function own(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

type Reviver = (key: string, value: unknown) => unknown;

function parseKeepingNumbers(text: string): unknown {
  const keep = (_key: string, value: unknown, { source }: Readonly<{ source?: string }>): unknown =>
    typeof value === 'number' ? source : value;
  try {
    return JSON.parse(text, keep as Reviver);
  } catch {
    // Nested too deeply for the reviver.
    return undefined;
  }
}
