import assert from 'node:assert/strict';

import type { Problem } from './config-error.ts';
import { isMap, type Format, type Unit } from './formats/format.ts';
import { isBelow, keysBetween, parentPath } from './key-path.ts';

/** A key: its format and its default. */
export type Setting<T, U extends Unit = Unit> = Format<T, U> &
  Readonly<{
    fallback: T;
    /** The default as written in a file; null if there is no default value. */
    written: unknown;
  }>;

export type Section = { readonly [key: string]: Setting<unknown> | Section };

export function withDefault<T, U extends Unit>(format: Format<T, U>, written: unknown): Setting<T, U> {
  const parsed = format.parse(written);
  assert(parsed.ok, 'a default must satisfy its own format');
  return { ...format, fallback: parsed.value, written };
}

export function optional<T, U extends Unit>(format: Format<T, U>): Setting<T | undefined, U> {
  return { ...format, fallback: undefined, written: null };
}

export const isSetting = (node: Setting<unknown> | Section): node is Setting<unknown> =>
  typeof node['parse'] === 'function';

type Camel<K extends string> = K extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : K;

/** The key in the code: camelCase, with its unit as suffix. */
export type OutputKey<K extends string, Node> =
  Node extends Format<unknown, infer U> ? `${Camel<K>}${U}` : Camel<K>;

/** The values of a section by the keys of the code: `conn_max_lifetime` is `connMaxLifetimeMs`. */
export type Values<S extends Section> = {
  readonly [K in keyof S & string as OutputKey<K, S[K]>]: S[K] extends Setting<infer T>
    ? T
    : S[K] extends Section
      ? Values<S[K]>
      : never;
};

/** Every setting of the section by its path, such as `kafka.sasl.username`. */
export function settingsOf(section: Section, parent = ''): ReadonlyMap<string, Setting<unknown>> {
  return new Map(
    Object.entries(section).flatMap(([key, node]) =>
      isSetting(node) ? [[`${parent}${key}`, node] as const] : [...settingsOf(node, `${parent}${key}.`)],
    ),
  );
}

/** A given value, as parsed from YAML. */
export type Given = Readonly<{
  value: unknown;
  source: string;
  /** Its layer; higher layers override lower ones. */
  rank: number;
  /** Its secret file, to be read again when it changes. */
  file?: string | undefined;
}>;

export type AllGiven = ReadonlyMap<string, Given>;

/** The parsed values, and defaults for the rest and for invalid values. */
export function readValues<S extends Section>(section: S, given: AllGiven, problems: Problem[]): Values<S> {
  const read = (node: Section, parent: string): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(node).map(([key, child]) => {
        const path = `${parent}${key}`;
        return isSetting(child)
          ? [`${camel(key)}${child.unit}`, readSetting(child, path, given, problems)]
          : [camel(key), read(child, `${path}.`)];
      }),
    );
  return read(section, '') as Values<S>;
}

function readSetting(setting: Setting<unknown>, path: string, given: AllGiven, problems: Problem[]): unknown {
  const value = setting.keys === undefined ? given.get(path)?.value : treeAt(path, given);
  if (value === undefined) return setting.fallback;
  const parsed = setting.parse(value);
  if (parsed.ok) return parsed.value;
  for (const { at, reason, suggestion } of parsed.issues)
    problems.push({ path: `${path}${at}`, reason, source: sourceOf(`${path}${at}`, given), suggestion });
  return parsed.rest ?? setting.fallback;
}

/** Rebuilds a map that was merged key by key. */
function treeAt(path: string, given: AllGiven): unknown {
  const root = given.get(path)?.value;
  if (!isMap(root)) return root;
  const trees = new Map([[path, treeOf(root)]]);
  const put = (below: string, value: unknown): void => {
    const parent = parentPath(below);
    // A variable may set a key of a map that is in no file.
    if (!trees.has(parent)) put(parent, {});
    const tree = isMap(value) ? treeOf(value) : undefined;
    if (tree) trees.set(below, tree);
    const [key = ''] = keysBetween(parent, below);
    Object.assign(trees.get(parent) ?? {}, { [key]: tree ?? value });
  };
  for (const [below, { value }] of given) if (isBelow(below, path)) put(below, value);
  return trees.get(path);
}

/** Without a prototype, so that `__proto__` is an ordinary key. */
const treeOf = (map: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.assign(Object.create(null) as Record<string, unknown>, map);

/** Of what a problem is about, or of what it stands in. */
function sourceOf(path: string, given: AllGiven): string | undefined {
  const found = given.get(path)?.source;
  const parent = parentPath(path);
  return found !== undefined || parent === path ? found : sourceOf(parent, given);
}

export const camel = (key: string): string =>
  key.replaceAll(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase());
