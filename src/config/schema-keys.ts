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

const ROOT = { keys: [], path: '' };

function keysOf(node: TSchema): readonly string[] {
  if (Type.IsUnion(node)) return [...new Set(node.anyOf.flatMap(keysOf))];
  return Type.IsObject(node) ? Object.keys(node.properties) : [];
}

/** Undefined outside of sections. Else the path that was meant by a key: a sibling that looks alike, else the same key elsewhere. */
export function suggestPath(root: TSchema, parent: string, key: string): string | undefined {
  const paths = [...new Set(keysIn(root).flatMap(({ path }) => withParents(path)))];
  if (parent !== '' && !paths.includes(parent)) return undefined;
  const siblings = paths.filter((path) => path === childPath(parent, lastOf(path)));
  const alike = nearest(key, siblings.map(lastOf)).map((sibling) => childPath(parent, sibling));
  return anyOf(alike.length > 0 ? alike : paths.filter((path) => lastOf(path) === key));
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

const withParents = (path: string): readonly string[] =>
  path.split('.').map((_, index, keys) => keys.slice(0, index + 1).join('.'));
