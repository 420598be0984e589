import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { codeOf } from '../../kernel/errors.ts';
import { jsonFromText } from '../from-text.ts';
import { decoded, isMap, text, type About } from './value.ts';

/** The schema that ships with us, by its name. */
const SHIPPED: ReadonlyMap<string, string> = new Map([
  ['order', fileURLToPath(new URL('../../../config/schemas/order.json', import.meta.url))],
]);

const MAX_CHARACTERS = 1024 * 1024;
const MAX_DEPTH = 64;

type RequestSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema that a destination names: `order`, or any other by the path of its file. */
export const requestSchema = (about: About) =>
  decoded(
    text({
      what: 'order, or the path of a JSON file',
      pattern: '.',
      rule: (name) => readRequestSchema(name).reason,
      ...about,
    }),
    (name): RequestSchema => readRequestSchema(name).schema ?? {},
  );

type Read = Readonly<{ schema: RequestSchema; reason?: undefined } | { schema?: undefined; reason: string }>;

export function readRequestSchema(name: string): Read {
  let text: string;
  try {
    text = readFileSync(SHIPPED.get(name) ?? name, 'utf8');
  } catch (error) {
    return { reason: `the file cannot be read: ${codeOf(error) ?? 'unknown error'}` };
  }
  if (text.length > MAX_CHARACTERS) return { reason: `the file is larger than ${MAX_CHARACTERS} characters` };
  const schema = jsonFromText(text.replace(/^\uFEFF/, ''));
  if (!isMap(schema)) return { reason: 'the file must hold a JSON object' };
  return isDeeperThan(MAX_DEPTH, schema) ? { reason: 'the file is nested too deeply' } : { schema };
}

function isDeeperThan(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((each) => isDeeperThan(depth - 1, each));
}
