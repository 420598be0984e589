import { Type, type TSchema } from 'typebox';

import { nearest } from '../kernel/nearest.ts';
import { anyOf, isMap } from './formats/value.ts';
import { childPath } from './key-path.ts';

/** A key that holds a value or a map of names, or that stands inside of one. */
export type SchemaKey = Readonly<{ keys: readonly string[]; path: string; node: TSchema; isNamed: boolean }>;

/** What the schema says about a key of a map; undefined for an unknown key and below data. */
export function childNode(node: TSchema | undefined, key: string): TSchema | undefined {
  if (node === undefined) return undefined;
  if (Type.IsRecord(node)) return Object.values(node.patternProperties)[0];
  if (Type.IsUnion(node))
    return node.anyOf.map((each) => (Type.IsObject(each) ? childNode(each, key) : undefined)).find(Boolean);
  return Type.IsObject(node) && Object.hasOwn(node.properties, key) ? node.properties[key] : undefined;
}

/** All keys, and of those that users choose the ones that the tree has. Sections are none. */
export function keysIn(
  node: TSchema,
  tree: unknown = {},
  parent: Pick<SchemaKey, 'keys' | 'path'> = ROOT,
  isNamed = false,
): readonly SchemaKey[] {
  const known = Type.IsRecord(node) ? Object.keys(isMap(tree) ? tree : {}) : keysOf(node);
  return known.flatMap((key) => {
    const child = childNode(node, key);
    if (child === undefined) return [];
    const place = { keys: [...parent.keys, key], path: childPath(parent.path, key) };
    const isInside = isNamed || Type.IsRecord(node);
    const inner = keysIn(
      child,
      isMap(tree) && Object.hasOwn(tree, key) ? tree[key] : undefined,
      place,
      isInside,
    );
    return Type.IsObject(child) && !isInside
      ? inner
      : [{ ...place, node: child, isNamed: isInside }, ...inner];
  });
}

/** Whether `secrets.files` and a `_FILE` variable may name a file with the value. Others say `{file: …}` themselves. */
export const mayBeInFile = ({ node }: SchemaKey): boolean =>
  !Type.IsUnion(node) && ('isSecret' in node || 'secretFile' in node);

const ROOT = { keys: [], path: '' };

function keysOf(node: TSchema): readonly string[] {
  if (Type.IsUnion(node)) return [...new Set(node.anyOf.flatMap(keysOf))];
  return Type.IsObject(node) ? Object.keys(node.properties) : [];
}

/** Undefined outside of sections. Else the path that was meant by a key: a sibling that looks alike, else the same key elsewhere. */
export function suggestPath(root: TSchema, parent: string, key: string): string | undefined {
  const last = lastKeys(root);
  if (parent !== '' && !last.has(parent)) return undefined;
  const siblings = [...last].flatMap(([path, each]) => (path === childPath(parent, each) ? [each] : []));
  const alike = nearest(key, siblings).map((sibling) => childPath(parent, sibling));
  if (alike.length > 0) return anyOf(alike);
  return anyOf([...last].flatMap(([path, each]) => (each === key ? [path] : [])));
}

/** Of sections and of the keys in them, by path. */
function lastKeys(root: TSchema): ReadonlyMap<string, string> {
  const last = new Map<string, string>();
  for (const { keys } of keysIn(root)) {
    let path = '';
    for (const key of keys) {
      path = childPath(path, key);
      last.set(path, key);
    }
  }
  return last;
}
