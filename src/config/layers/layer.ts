import { nearest } from '../../kernel/nearest.ts';
import type { Problem } from '../config-error.ts';
import { anyOf, isMap, type Format, type Unit } from '../formats/format.ts';
import { childPath, isBelow } from '../key-path.ts';
import type { AllGiven, Given } from '../setting.ts';

/** A value for a path, or null: what lower layers say about the path and all below it is forgotten. */
export type Entry = Readonly<{ path: string; value: unknown; source: string; file?: string }>;

/** What one source of configuration says. */
export type Layer = Readonly<{
  entries: readonly Entry[];
  problems: readonly Problem[];
  warnings: readonly string[];
}>;

/** Nothing that we know is deeper or has more keys; what is and has stays whole, for its format to refuse. */
const MAX_DEPTH = 8;
const MAX_KEYS = 1000;

/**
 * The entries of a map that merges key by key: an empty map for each map in it, and every value by its own path. What
 * is data by its format is a value, whatever is in it.
 */
export function entriesOf(
  path: string,
  value: unknown,
  sourceAt: (keys: readonly string[]) => string,
  format?: Format<unknown, Unit>,
): readonly Entry[] {
  const below = (
    at: string,
    each: unknown,
    keys: readonly string[],
    its: Format<unknown, Unit> | undefined,
  ): readonly Entry[] => {
    const source = sourceAt(keys);
    const children = isMap(each) && its?.isData !== true ? Object.entries(each) : undefined;
    if (children === undefined || children.length > MAX_KEYS || keys.length === MAX_DEPTH)
      return [{ path: at, value: each, source }];
    const inner = children.flatMap(([key, child]) =>
      below(childPath(at, key), child, [...keys, key], formatOf(its, key)),
    );
    return [{ path: at, value: {}, source }, ...inner];
  };
  return below(path, value, [], format);
}

function formatOf(map: Format<unknown, Unit> | undefined, key: string): Format<unknown, Unit> | undefined {
  if (map?.keys === undefined) return undefined;
  if ('chosen' in map.keys) return map.keys.chosen;
  return Object.hasOwn(map.keys.known, key) ? map.keys.known[key] : undefined;
}

/** The lowest layer first. Maps merge, because every key is an entry of its own; lists are values and replace. */
export function mergeLayers(layers: readonly Layer[]): AllGiven {
  const given = new Map<string, Given>();
  for (const [rank, layer] of layers.entries()) {
    for (const { path, value, source, file } of layer.entries) {
      // A map leaves what is in it to the entries below it; what is no map takes the place of a whole one.
      if (value === null || (!isMap(value) && isMap(given.get(path)?.value))) remove(given, path);
      if (value !== null) given.set(path, { value, source, rank, file });
    }
  }
  return given;
}

function remove(given: Map<string, Given>, path: string): void {
  for (const known of given.keys()) if (known === path || isBelow(known, path)) given.delete(known);
}

/** The path that was meant by a key under `parent`: a sibling that looks alike, else the same key elsewhere. */
export function suggestPath(parent: string, key: string, known: Iterable<string>): string | undefined {
  const paths = [...new Set([...known].flatMap(withParents))];
  const siblings = paths.filter((path) => path === `${parent}${lastOf(path)}`).map(lastOf);
  const alike = nearest(key, siblings).map((sibling) => `${parent}${sibling}`);
  return anyOf(alike.length > 0 ? alike : paths.filter((path) => lastOf(path) === key));
}

const lastOf = (path: string): string => path.slice(path.lastIndexOf('.') + 1);

function withParents(path: string): readonly string[] {
  const keys = path.split('.');
  return keys.map((_, index) => keys.slice(0, index + 1).join('.'));
}
