import type { Config } from './config.ts';
import { Secret } from './layers/secret.ts';

/** One value in effect. */
export type DescribedSetting = Readonly<{
  /** As in the configuration file: `server.port`. */
  path: string;
  /** As text; null if it is hidden. */
  value: string | null;
  /** Where it was given; null for defaults, and for what follows from other values. */
  source: string | null;
}>;

const maxDepth = 8;
const maxLength = 500;
/** Whatever is called like this is hidden, even where the schema does not say that it is a secret. */
const secretName =
  /password|secret|token|authorization|credential|cookie|private|^(key|headers|sasl|passphrase)$|(master|hash|session)_keys?$/;

/** The configuration in effect, with secrets hidden, by path. */
export function describeConfig(config: Config): readonly DescribedSetting[] {
  const { sources, secretFiles: _files, warnings: _warnings, ...settings } = config;
  return describe(settings, '', 0)
    .map(([path, value]) => ({ path, value, source: sources[path] ?? null }))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

type Described = readonly [path: string, value: string | null];

function describe(value: unknown, path: string, depth: number): readonly Described[] {
  if (value === undefined) return [];
  if (value === null || typeof value === 'boolean') return [[path, String(value)]];
  if (value instanceof Secret || typeof value === 'function' || secretName.test(lastOf(path)))
    return [[path, null]];
  if (typeof value !== 'object') return [[path, shown(value)]];
  if (Array.isArray(value) && value.every((item) => typeof item !== 'object')) return [[path, shown(value)]];
  const members = membersOf(value);
  if (members === null || depth >= maxDepth) return [[path, null]];
  if (members.length === 0) return [[path, shown(value)]];
  return members.flatMap(([name, member]) =>
    describe(member, path === '' ? name : `${path}.${name}`, depth + 1),
  );
}

/** Of maps and lists; null for anything else, of which nobody knows what it shows. */
function membersOf(value: object): readonly (readonly [string, unknown])[] | null {
  if (Array.isArray(value))
    return value.map((item: unknown, i) => [nameOf(item) ?? String(i), item] as const);
  if (Object.getPrototypeOf(value) !== Object.prototype) return null;
  return Object.entries(value).map(([name, member]) => [snakeCase(name), member] as const);
}

function nameOf(item: unknown): string | undefined {
  return typeof item === 'object' && item !== null && 'name' in item && typeof item.name === 'string'
    ? item.name
    : undefined;
}

/** Of an address only the server: its path and its parameters are often the secret of a webhook. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const safe = text.replaceAll(/(\w+:\/\/)(?:[^/@\s"]*@)?([^/?#\s"]*)(?:[/?#][^\s"]+)?/g, '$1$2');
  return safe.length > maxLength ? `${safe.slice(0, maxLength)}…` : safe;
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
