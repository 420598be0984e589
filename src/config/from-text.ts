import { Type, type TSchema } from 'typebox';

/**
 * What the text of an environment variable or a secret file means. What is no number, switch or JSON stays as it is, for
 * the schema to refuse.
 */
export function fromText(node: TSchema, text: string): unknown {
  if (Type.IsBoolean(node)) return SWITCH.get(text.toLowerCase()) ?? text;
  if (Type.IsInteger(node)) return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
  if (Type.IsNumber(node)) return /^-?\d{1,15}(\.\d{1,15})?$/.test(text) ? Number(text) : text;
  if (Type.IsUnion(node)) return fromTextOfUnion(node.anyOf, text, 'isSecret' in node);
  if (Type.IsArray(node)) return listFromText(text);
  return Type.IsObject(node) || Type.IsRecord(node) || Type.IsUnknown(node) ? jsonFromText(text) : text;
}

const SWITCH = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

/** Whatever a variable holds is the secret, even if it looks like a map. */
function fromTextOfUnion(nodes: readonly TSchema[], text: string, isSecret: boolean): unknown {
  if (isSecret) return text;
  if (nodes.some((each) => Type.IsArray(each))) return listFromText(text);
  const leaf = nodes.find((each) => !Type.IsObject(each));
  return leaf === undefined || text.trimStart().startsWith('{') ? jsonFromText(text) : fromText(leaf, text);
}

/** `a,b,c`, or a JSON list. */
function listFromText(text: string): unknown {
  if (text.trimStart().startsWith('[')) return jsonFromText(text);
  const items = text.split(',').map((item) => item.trim());
  return items.filter((item) => item !== '');
}

export function jsonFromText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
