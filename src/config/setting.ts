import assert from 'node:assert/strict';

import type { Problem } from './config-error.ts';
import { isMap, type Format, type Unit } from './format.ts';
import { isBelow, keysBetween, parentPath } from './key-path.ts';

/** A key: how its value is written, and what holds when nobody writes it. */
export type Setting<T, U extends Unit = Unit> = Format<T, U> &
  Readonly<{
    fallback: T;
    /** The default as one would write it; null where the default is that there is no value. */
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

/** The key that the code uses: in camel case, with the unit behind it. */
export type OutputKey<K extends string, Node> =
  Node extends Format<unknown, infer U> ? `${Camel<K>}${U}` : Camel<K>;

/** The values of a section, under the keys that the code uses: `conn_max_lifetime` is `connMaxLifetimeMs`. */
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

/** A value that somebody wrote, as YAML would give it. */
export type Given = Readonly<{
  value: unknown;
  source: string;
  /** The layer that it came with: of two values of one thing, the one of the higher layer holds. */
  rank: number;
  /** The secret file that it came from, to be read again when it changes. */
  file?: string | undefined;
}>;

export type AllGiven = ReadonlyMap<string, Given>;

/** What was given, parsed, and the defaults for the rest. A value with a problem has its default meanwhile. */
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

/** A map that was merged key by key, put together again. */
function treeAt(path: string, given: AllGiven): unknown {
  const root = given.get(path)?.value;
  if (!isMap(root)) return root;
  const trees = new Map([[path, treeOf(root)]]);
  const put = (below: string, value: unknown): void => {
    const parent = parentPath(below);
    // A variable may set a key in a map that no file has.
    if (!trees.has(parent)) put(parent, {});
    const tree = isMap(value) ? treeOf(value) : undefined;
    if (tree) trees.set(below, tree);
    const [key = ''] = keysBetween(parent, below);
    Object.assign(trees.get(parent) ?? {}, { [key]: tree ?? value });
  };
  for (const [below, { value }] of given) if (isBelow(below, path)) put(below, value);
  return trees.get(path);
}

/** Without a prototype no key is special, `__proto__` included. */
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
