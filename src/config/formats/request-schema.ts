import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { codeOf } from '../../kernel/errors.ts';
import { accept, isMap, jsonFromText, reject, type Parsed } from './format.ts';

/** The schema that ships with us, by its name. */
const SHIPPED: ReadonlyMap<string, string> = new Map([
  ['order', fileURLToPath(new URL('../../../config/schemas/order.json', import.meta.url))],
]);

const MAX_CHARACTERS = 1024 * 1024;
const MAX_DEPTH = 64;

/** The JSON Schema that a destination names: `order`, or any other by the path of its file. */
export function readRequestSchema(name: string): Parsed<Readonly<Record<string, unknown>>> {
  let text: string;
  try {
    text = readFileSync(SHIPPED.get(name) ?? name, 'utf8');
  } catch (error) {
    return reject(`the file cannot be read: ${codeOf(error) ?? 'unknown error'}`);
  }
  if (text.length > MAX_CHARACTERS) return reject(`the file is larger than ${MAX_CHARACTERS} characters`);
  const value = jsonFromText(text.replace(/^\uFEFF/, ''));
  if (!isMap(value)) return reject('the file must hold a JSON object');
  return isDeeperThan(MAX_DEPTH, value) ? reject('the file is nested too deeply') : accept(value);
}

function isDeeperThan(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((each) => isDeeperThan(depth - 1, each));
}
