import type { Problem } from './config-error.ts';
import { anyOf } from './format.ts';
import { nearest } from './nearest.ts';
import type { AllGiven, Given } from './setting.ts';

/** A value for a path, or null: what lower layers say about the path and all below it is forgotten. */
export type Entry = Readonly<{ path: string; value: unknown; source: string; file?: string }>;

/** What one source of configuration says. */
export type Layer = Readonly<{
  entries: readonly Entry[];
  problems: readonly Problem[];
  warnings: readonly string[];
}>;

/** The lowest layer first. Maps merge, because every key is an entry of its own; lists are values and replace. */
export function mergeLayers(layers: readonly Layer[]): AllGiven {
  const given = new Map<string, Given>();
  for (const [rank, layer] of layers.entries()) {
    for (const { path, value, source, file } of layer.entries) {
      if (value === null) remove(given, path);
      else given.set(path, { value, source, rank, file });
    }
  }
  return given;
}

function remove(given: Map<string, Given>, path: string): void {
  for (const known of given.keys()) if (known === path || known.startsWith(`${path}.`)) given.delete(known);
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
