import { nearest } from '../../kernel/nearest.ts';
import type { Problem } from '../config-error.ts';
import { anyOf, type Format, type KeyFormats, type Unit } from '../formats/format.ts';
import { childPath, parentPath } from '../key-path.ts';
import { entriesOf, type Entry, type Layer } from './layer.ts';
import type { AllGiven, Setting } from '../setting.ts';

/** Names that others have made common. The name after the path, such as SERVER_PORT, wins over them. */
const ALIASES = {
  PORT: 'server.port',
  LOG_LEVEL: 'telemetry.log_level',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'telemetry.otlp_endpoint',
} as const;

export const variableOf = (path: string): string =>
  path
    .toUpperCase()
    .replaceAll(/[^A-Z\d]+/g, '_')
    .replace(/_$/, '');

type Named = Readonly<{ variable: string; path: string; format: Format<unknown, Unit> }>;

/**
 * Every key by its path in capitals: DLQ_ARCHIVE_RETENTION_DAYS. An empty variable counts as not set, as
 * templates leave them. The environment holds much that is not ours: a variable that only looks like a key
 * is no error but a warning.
 *
 * Keys that users choose have variables as well where `given` has them: for a destination named `broker` in a
 * file, OUTBOX_DESTINATIONS_BROKER_URL.
 */
export function environmentLayer(
  env: NodeJS.ProcessEnv,
  settings: ReadonlyMap<string, Setting<unknown>>,
  given: AllGiven = new Map(),
): Layer {
  const named = namedKeys(settings, given);
  const entries: Entry[] = [];
  const problems: Problem[] = [];
  const warnings: string[] = [];
  for (const { variable, path, format } of named) {
    const text = env[variable] ?? '';
    if (text === '') continue;
    const others = named.filter((each) => each.variable === variable && each.path !== path);
    if (isServiceLink(variable, text))
      warnings.push(`${variable} is ignored: it is a Kubernetes service link`);
    else if (others.length > 0)
      problems.push({ path, reason: `has the same variable as ${others[0]?.path}`, source: variable });
    else entries.push(...entriesOf(path, format.fromText(text), () => variable, format));
  }
  const known = named.map(({ variable }) => variable);
  return { entries, problems, warnings: [...warnings, ...strangers(env, known, settings)] };
}

/** The outer keys before those inside them, so that the more exact variable wins. */
function namedKeys(settings: ReadonlyMap<string, Setting<unknown>>, given: AllGiven): readonly Named[] {
  const aliases = Object.entries(ALIASES).flatMap(([variable, path]) => {
    const format = settings.get(path);
    return format ? [{ variable, path, format }] : [];
  });
  // A key at the top has no parent but itself.
  const inside = Map.groupBy(
    [...given.keys()].filter((path) => parentPath(path) !== path),
    parentPath,
  );
  const keys = [...settings].flatMap(([path, format]) => withKeysIn(format, path, inside));
  return [...aliases, ...keys];
}

/** A key and, if it is a map, the keys in it: all that are known, and of those that users choose the ones they chose. */
function withKeysIn(
  format: Format<unknown, Unit>,
  path: string,
  inside: ReadonlyMap<string, readonly string[]>,
): readonly Named[] {
  return [{ variable: variableOf(path), path, format }, ...innerKeys(format.keys, path, inside)];
}

function innerKeys(
  keys: KeyFormats | undefined,
  path: string,
  inside: ReadonlyMap<string, readonly string[]>,
): readonly Named[] {
  if (keys === undefined) return [];
  if ('chosen' in keys)
    return (inside.get(path) ?? []).flatMap((each) => withKeysIn(keys.chosen, each, inside));
  return Object.entries(keys.known).flatMap(([key, format]) =>
    withKeysIn(format, childPath(path, key), inside),
  );
}

/** Variables that look meant for us and are none of ours. */
function strangers(
  env: NodeJS.ProcessEnv,
  known: readonly string[],
  settings: ReadonlyMap<string, unknown>,
): readonly string[] {
  const sections = new Set(
    [...settings.keys()].flatMap((path) => (path.includes('.') ? [sectionOf(path)] : [])),
  );
  return Object.entries(env).flatMap(([variable, text = '']) => {
    if (known.includes(variable) || !variable.includes('_') || isServiceLink(variable, text)) return [];
    const section = [...sections].find((each) => variable.startsWith(each));
    const meant = anyOf(
      section === undefined ? nearMiss(variable, known) : suggestVariable(variable, section, known),
    );
    if (section === undefined && meant === undefined) return [];
    return [`${variable} is not the name of a key${meant === undefined ? '' : `; did you mean ${meant}?`}`];
  });
}

const sectionOf = (path: string): string => `${variableOf(path.slice(0, path.indexOf('.')))}_`;

/** Within the section the same slips count as in a file; else the key at the end of another path. */
function suggestVariable(variable: string, section: string, known: readonly string[]): readonly string[] {
  const key = variable.slice(section.length);
  const keys = known.filter((each) => each.startsWith(section)).map((each) => each.slice(section.length));
  const alike = nearest(key, keys);
  return (alike.length > 0 ? alike : keys.filter((each) => each.endsWith(`_${key}`))).map(
    (each) => `${section}${each}`,
  );
}

/** Outside our sections most names are foreign: only one slip in a long name is taken for a mistake. */
const nearMiss = (variable: string, known: readonly string[]): readonly string[] =>
  variable.length < 8 ? [] : nearest(variable, known, 1);

/** For a Service named `database` Kubernetes sets DATABASE_PORT=tcp://10.0.0.1:5432 and more in every pod. */
const isServiceLink = (variable: string, text: string): boolean =>
  /_SERVICE_(HOST|PORT)|_PORT_\d+_(TCP|UDP|SCTP)/.test(variable) ||
  (variable.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(text));
