import assert from 'node:assert/strict';

import type { Problem } from './config-error.ts';
import type { Format, Unit } from './format.ts';

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

type OutputKey<K extends string, Node> =
  Node extends Setting<unknown, infer U> ? `${Camel<K>}${U}` : Camel<K>;

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
          ? [`${camel(key)}${child.unit}`, readSetting(child, path, given.get(path), problems)]
          : [camel(key), read(child, `${path}.`)];
      }),
    );
  return read(section, '') as Values<S>;
}

function readSetting(
  setting: Setting<unknown>,
  path: string,
  given: Given | undefined,
  problems: Problem[],
): unknown {
  if (!given) return setting.fallback;
  const parsed = setting.parse(given.value);
  if (parsed.ok) return parsed.value;
  for (const { at, reason, suggestion } of parsed.issues)
    problems.push({ path: `${path}${at}`, reason, source: given.source, suggestion });
  return setting.fallback;
}

const camel = (key: string): string =>
  key.replaceAll(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase());
