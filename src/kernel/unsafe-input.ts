import type { ErrorDetail } from './errors.ts';

/** As deep as PostgreSQL's JSON is stored here; deeper values would exhaust the stack of whatever walks them. */
export const MAX_DEPTH = 512;
const MAX_FIELD_LENGTH = 200;

/** An object or array still to be looked at. Its name is made only when it is needed: a body has many of these. */
type Node = Readonly<{ value: object; key: string; parent: Node | null; depth: number }>;

/**
 * The first thing in parsed input that nothing behind this layer can hold: NUL or a lone surrogate in a text
 * (PostgreSQL stores neither), a key that would replace a prototype, or nesting without a sensible end.
 * Walks with a list of its own, not by recursion, so that depth cannot hurt it.
 */
export function findUnsafeInput(input: unknown, root: string): ErrorDetail | null {
  if (typeof input === 'string' && !isStorable(input)) return unstorable(root);
  const pending: Node[] = [];
  if (isObject(input)) pending.push({ value: input, key: '', parent: null, depth: 1 });
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (node.depth > MAX_DEPTH) return tooDeep(root);
    const flaw = Array.isArray(node.value)
      ? lookIntoArray(node, node.value, pending)
      : lookIntoObject(node, pending);
    if (flaw !== null) return flaw;
  }
  return null;
}

function lookIntoArray(node: Node, items: readonly unknown[], pending: Node[]): ErrorDetail | null {
  for (let index = 0; index < items.length; index += 1) {
    const value = items[index];
    if (typeof value === 'string' && !isStorable(value)) return unstorable(fieldOf(node, String(index)));
    if (isObject(value)) pending.push({ value, key: String(index), parent: node, depth: node.depth + 1 });
  }
  return null;
}

function lookIntoObject(node: Node, pending: Node[]): ErrorDetail | null {
  const object = node.value as Readonly<Record<string, unknown>>;
  for (const key of Object.keys(object)) {
    if (key === '__proto__') return forbidden(fieldOf(node, key));
    const value = object[key];
    const isText = typeof value === 'string';
    if (!isStorable(key) || (isText && !isStorable(value))) return unstorable(fieldOf(node, key));
    if (isObject(value)) pending.push({ value, key, parent: node, depth: node.depth + 1 });
  }
  return null;
}

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function fieldOf(node: Node, key: string): string {
  const keys = [key];
  for (let at: Node | null = node; at?.parent != null; at = at.parent) keys.unshift(at.key);
  return fieldPath(keys);
}

/** `request.items.0.qty`: how an error names a place in the input, in a form that can be stored and shown. */
export function fieldPath(keys: readonly string[]): string {
  return keys.join('.').slice(0, MAX_FIELD_LENGTH).toWellFormed().replaceAll('\0', '\ufffd');
}

function unstorable(field: string): ErrorDetail {
  return { field, reason: 'unstorable_text', message: 'must not contain NUL or a lone surrogate' };
}

function forbidden(field: string): ErrorDetail {
  return { field, reason: 'forbidden_key', message: 'must not be used as a name' };
}

export function tooDeep(field: string): ErrorDetail {
  return { field, reason: 'max_depth', message: `must not be nested deeper than ${MAX_DEPTH} levels` };
}
