import { Type, type TSchema } from 'typebox';

import type { Problem } from '../config-error.ts';
import { isMap } from '../formats/value.ts';
import { childPath, isBelow } from '../key-path.ts';
import { childNode } from '../schema-keys.ts';

/** A value for a key, or for the whole file. A map merges into what lower layers say; null removes that. */
export type Entry = Readonly<{
  keys: readonly string[];
  value: unknown;
  source: string | ((keys: readonly string[]) => string);
  file?: string;
}>;

/** What one source of configuration says. */
export type Layer = Readonly<{
  entries: readonly Entry[];
  problems: readonly Problem[];
  warnings: readonly string[];
}>;

/** A value that was given, and where it comes from. */
export type Given = Readonly<{
  value: unknown;
  source: string;
  /** Its layer; higher layers override lower ones. */
  rank: number;
  /** Its secret file, to be read again when it changes. */
  file?: string | undefined;
}>;

/** By path. */
export type AllGiven = ReadonlyMap<string, Given>;

type Tree = Record<string, unknown>;

/** Nothing that we know is deeper or has more keys; what is and has stays whole, for the schema to refuse. */
const MAX_DEPTH = 8;
const MAX_KEYS = 1000;

/** The lowest layer first. Maps merge, lists are values and replace, null removes. */
export function mergeLayers(
  layers: readonly Layer[],
  schema?: TSchema,
): Readonly<{ tree: Tree; given: AllGiven }> {
  const root = newTree();
  const given = new Map<string, Given>();
  for (const [rank, { entries }] of layers.entries())
    for (const { keys, value, source, file } of entries) {
      const sourceAt = typeof source === 'string' ? (): string => source : source;
      // A variable may set a key of a map that is in no file.
      const nested = keys.reduceRight((inner, key) => Object.assign(newTree(), { [key]: inner }), value);
      if (isMap(nested))
        merge({ given, rank, file, sourceAt }, root, nested, { keys: [], path: '', node: schema });
    }
  return { tree: root, given };
}

type From = Readonly<{
  given: Map<string, Given>;
  rank: number;
  file: string | undefined;
  sourceAt: (keys: readonly string[]) => string;
}>;
type Place = Readonly<{ keys: readonly string[]; path: string; node: TSchema | undefined }>;

function merge(from: From, into: Tree, map: Readonly<Tree>, parent: Place): void {
  const { given, rank, file } = from;
  for (const [key, value] of Object.entries(map)) {
    const place = {
      keys: [...parent.keys, key],
      path: childPath(parent.path, key),
      node: childNode(parent.node, key),
    };
    const isUnknown = parent.node !== undefined && place.node === undefined;
    const merges = isMap(value) && isMergeable(value, place);
    if (!merges || !isMap(into[key])) remove(given, place.path);
    if (value === null && !isUnknown) delete into[key];
    else {
      if (!merges || !given.has(place.path))
        given.set(place.path, { value: merges ? {} : value, source: from.sourceAt(place.keys), rank, file });
      if (!merges) into[key] = value;
      else {
        const tree = newTree();
        into[key] = isMap(into[key]) ? Object.assign(tree, into[key]) : tree;
        merge(from, tree, value, place);
      }
    }
  }
}

const isMergeable = (map: object, { keys, node }: Place): boolean =>
  keys.length < MAX_DEPTH && Object.keys(map).length <= MAX_KEYS && !(node && Type.IsUnknown(node));

function remove(given: Map<string, Given>, path: string): void {
  for (const known of given.keys()) if (known === path || isBelow(known, path)) given.delete(known);
}

/** Without a prototype, so that `__proto__` is an ordinary key. */
const newTree = (): Tree => Object.create(null) as Tree;
