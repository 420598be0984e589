import { anyOf } from './format.ts';
import type { Entry, Layer } from './layer.ts';
import { nearest } from './nearest.ts';
import type { Setting } from './setting.ts';

/** Names that others have made common. The name after the path, such as SERVER_PORT, wins over them. */
const ALIASES = {
  PORT: 'server.port',
  LOG_LEVEL: 'telemetry.log_level',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'telemetry.otlp_endpoint',
} as const;

export const variableOf = (path: string): string => path.toUpperCase().replaceAll('.', '_');

/**
 * Every key by its path in capitals: DLQ_ARCHIVE_RETENTION_DAYS. An empty variable counts as not set, as
 * templates leave them. The environment holds much that is not ours: a variable that only looks like a key
 * is no error but a warning.
 */
export function environmentLayer(
  env: NodeJS.ProcessEnv,
  settings: ReadonlyMap<string, Setting<unknown>>,
): Layer {
  const named = [
    ...Object.entries(ALIASES),
    ...[...settings.keys()].map((path) => [variableOf(path), path] as const),
  ];
  const entries: Entry[] = [];
  const warnings: string[] = [];
  for (const [variable, path] of named) {
    const text = env[variable] ?? '';
    const setting = settings.get(path);
    if (text === '' || !setting) continue;
    if (isServiceLink(variable, text))
      warnings.push(`${variable} is ignored: it is a Kubernetes service link`);
    else entries.push({ path, value: setting.fromText(text), source: variable });
  }
  const known = named.map(([variable]) => variable);
  return { entries, problems: [], warnings: [...warnings, ...strangers(env, known, settings)] };
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

const sectionOf = (path: string): string => variableOf(path.slice(0, path.indexOf('.') + 1));

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
