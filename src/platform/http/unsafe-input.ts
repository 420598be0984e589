import type { ErrorDetail } from '../../kernel/errors.ts';

/** As deep as PostgreSQL's JSON is stored here; deeper values would exhaust the stack of whatever walks them. */
const MAX_DEPTH = 512;
const MAX_FIELD_LENGTH = 200;

type Node = Readonly<{ value: object; field: string; depth: number }>;

/**
 * The first thing in parsed input that nothing behind this layer can hold: NUL or a lone surrogate in a text
 * (PostgreSQL stores neither), a key that would replace a prototype, or nesting without a sensible end.
 * Walks with a list of its own, not by recursion, so that depth cannot hurt it.
 */
export function findUnsafeInput(input: unknown, root: string): ErrorDetail | null {
  const flaw = flawOf(input, root);
  if (flaw !== null) return flaw;
  const pending: Node[] = isObject(input) ? [{ value: input, field: '', depth: 1 }] : [];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    if (node.depth > MAX_DEPTH)
      return detail(root, 'max_depth', `must not be nested deeper than ${MAX_DEPTH} levels`);
    for (const [key, value] of Object.entries(node.value)) {
      if (!isObject(value) && typeof value !== 'string' && key !== '__proto__' && isStorable(key)) continue;
      const field = node.field === '' ? key : `${node.field}.${key}`;
      const found = flawOfKey(key, field) ?? flawOf(value, field);
      if (found !== null) return found;
      if (isObject(value)) {
        const shortField = field.length > MAX_FIELD_LENGTH ? field.slice(0, MAX_FIELD_LENGTH) : field;
        pending.push({ value, field: shortField, depth: node.depth + 1 });
      }
    }
  }
  return null;
}

function flawOfKey(key: string, field: string): ErrorDetail | null {
  if (key === '__proto__') return detail(field, 'forbidden_key', 'must not be used as a name');
  return isStorable(key) ? null : detail(field, 'unstorable_text', 'has a name with NUL or a lone surrogate');
}

function flawOf(value: unknown, field: string): ErrorDetail | null {
  return typeof value !== 'string' || isStorable(value)
    ? null
    : detail(field, 'unstorable_text', 'must not contain NUL or a lone surrogate');
}

function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function detail(field: string, reason: string, message: string): ErrorDetail {
  return {
    field: field.slice(0, MAX_FIELD_LENGTH).toWellFormed().replaceAll('\0', '\ufffd'),
    reason,
    message,
  };
}
