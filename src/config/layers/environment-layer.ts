import { nearest } from '../../kernel/nearest.ts';
import type { Problem } from '../config-error.ts';
import { anyOf } from '../formats/value.ts';
import { fromText } from '../from-text.ts';
import { mayBeInFile, type SchemaKey } from '../schema-keys.ts';
import type { Entry, Layer } from './merge-layers.ts';
import { readNamedFile } from './secret-layer.ts';

export const variableOf = (path: string): string =>
  path
    .toUpperCase()
    .replaceAll(/[^A-Z\d]+/g, '_')
    .replace(/_$/, '');

const fileVariableOf = (path: string): string => `${variableOf(path)}_FILE`;

/**
 * Every key by its path in capitals: DLQ_ARCHIVE_RETENTION_DAYS. An empty variable counts as not set, as
 * templates leave them. The environment holds much that is not ours: a variable that only looks like a key
 * is no error but a warning.
 *
 * Keys that users choose have variables as well where a file has them: for a destination named `broker`,
 * OUTBOX_DESTINATIONS_BROKER_URL.
 *
 * DATABASE_PASSWORD_FILE names the file that holds the value, as Docker secrets need it.
 */
export function environmentLayer(env: NodeJS.ProcessEnv, keys: readonly SchemaKey[]): Layer {
  const named = namedKeys(keys);
  const entries: Entry[] = [];
  const problems: Problem[] = [];
  const warnings: string[] = [];
  for (const key of named) {
    const { variable, path, keys, node, isFile } = key;
    const text = env[variable] ?? '';
    if (text === '') continue;
    const others = named.filter((each) => each.variable === variable && each.path !== path);
    if (isServiceLink(variable, text))
      warnings.push(`${variable} is ignored: it is a Kubernetes service link`);
    else if (others.length > 0)
      problems.push({ path, reason: `has the same variable as ${others[0]?.path}`, source: variable });
    else if (isFile) {
      const read = readNamedFile(key, text, variable);
      entries.push(...read.entries);
      problems.push(...read.problems);
    } else entries.push({ keys, value: fromText(node, text), source: variable });
  }
  problems.push(...doubled(env, keys));
  const known = named.map(({ variable }) => variable);
  return { entries, problems, warnings: [...warnings, ...strangers(env, known, keys)] };
}

/** Common names first, so that the name after the path wins; outer keys before those inside them. */
function namedKeys(keys: readonly SchemaKey[]): readonly NamedKey[] {
  const common = keys.flatMap((key) =>
    'variable' in key.node ? { ...key, variable: String(key.node.variable), isFile: false } : [],
  );
  const exact = keys.map((key) => ({ ...key, variable: variableOf(key.path), isFile: false }));
  const files = keys
    .filter(mayBeInFile)
    .map((key) => ({ ...key, variable: fileVariableOf(key.path), isFile: true }));
  return [...common, ...exact, ...files];
}

type NamedKey = SchemaKey & Readonly<{ variable: string; isFile: boolean }>;

/** Secrets that are in a variable and in a file: whichever counted, the other would be there by mistake. */
function doubled(env: NodeJS.ProcessEnv, keys: readonly SchemaKey[]): readonly Problem[] {
  return keys.flatMap((key) => {
    const variables = [variableOf(key.path), fileVariableOf(key.path)];
    const isSecret = 'isSecret' in key.node || mayBeInFile(key);
    if (!isSecret || variables.some((variable) => (env[variable] ?? '') === '')) return [];
    const reason = 'is set twice: unset one of the two variables';
    return [{ path: key.path, reason, source: variables.join(', ') }];
  });
}

/** Variables that look meant for us and are none of ours. */
function strangers(
  env: NodeJS.ProcessEnv,
  known: readonly string[],
  keys: readonly SchemaKey[],
): readonly string[] {
  const sections = new Set(
    keys.flatMap(({ path, isNamed }) => (path.includes('.') && !isNamed ? [sectionOf(path)] : [])),
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
