import { basename, posix } from 'node:path';
import { readModuleFacts, type ModuleFacts } from './module-facts.ts';

/** A file of the project: its path from the root with forward slashes, and its text. */
export type ProjectFile = Readonly<{ path: string; text: string }>;

export type Rule =
  | 'nothing-read'
  | 'unreadable'
  | 'unknown-place'
  | 'slice-entry'
  | 'import-direction'
  | 'no-io'
  | 'environment'
  | 'yaml'
  | 'file-name'
  | 'file-length'
  | 'default-export';

export type Violation = Readonly<{ rule: Rule; path: string; message: string }>;

const SLICES: readonly string[] = ['dlq', 'outbox', 'jobs', 'saga'];
const LAYERS: readonly string[] = ['domain', 'usecase', 'adapter', 'infra'];
const MAX_LINES = 400;

/**
 * Every place in src/ and the places it may import from; each may import from itself. `~` is the own slice. A name
 * covers the places below it: `platform` covers `platform/http`.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  platform: ['kernel'],
  notify: ['kernel', 'platform'],
  // Runs in the processes of others: rules of a slice, but none of its server. Jobs are handled there by the same
  // worker that the server has.
  sdk: ['kernel', 'platform', ...SLICES.map((slice) => `${slice}/domain`), 'jobs/usecase', 'jobs/infra'],
  config: ['kernel'],
  cli: ['config', 'compose', 'kernel', 'platform'],
  main: ['compose', 'config', 'cli'],
  compose: ['config', 'kernel', 'platform', 'notify', 'sdk', 'cli', ...SLICES],
  '~/index': ['~', 'kernel', 'platform'],
  '~/domain': ['kernel'],
  '~/usecase': ['~/domain', 'kernel'],
  '~/adapter': ['~/usecase', '~/domain', 'kernel', 'platform/http'],
  '~/infra': ['~/usecase', '~/domain', 'kernel', 'platform'],
};

/** A test may also use the rest of its own slice, and what the project has for tests. */
const TEST_MAY_ALSO_IMPORT = ['~', 'kernel', 'platform', 'outside'];

/** Kernel and domain compute; a library gets on this list when it does nothing else either. */
const WITHOUT_IO: ReadonlySet<string> = new Set([
  'node:assert',
  'node:assert/strict',
  'node:buffer',
  'node:crypto',
  'node:timers/promises',
  'node:util',
  'canonicalize',
  'croner',
]);

/** Saga workflows are YAML that comes from outside, so that slice's adapter reads it as the configuration does. */
const MAY_READ_YAML: ReadonlySet<string> = new Set(['config', 'saga/adapter']);

const VAGUE_NAME = /(^|-)(utils?|helpers?|common|types|managers?)$/;

/** Checks the whole project at once. Only what is under src/ has a place; names, sizes and exports hold everywhere. */
export function checkArchitecture(files: readonly ProjectFile[]): readonly Violation[] {
  const modules = files.filter(({ path }) => path.endsWith('.ts'));
  if (!modules.some(({ path }) => path.startsWith('src/'))) {
    return [{ rule: 'nothing-read', path: 'src', message: 'no module was read, so nothing was checked' }];
  }
  return [...files.flatMap(checkPlace), ...modules.flatMap(checkModule)];
}

function checkPlace({ path }: ProjectFile): readonly Violation[] {
  const place = placeOf(path);
  if (place === 'outside') return [];
  const [slice = '', entry] = place.split('/');
  if (SLICES.includes(slice) && !(entry === 'index' || LAYERS.includes(entry ?? ''))) {
    const message = `a slice holds index.ts, ${LAYERS.join('/, ')}/ and nothing else`;
    return [{ rule: 'slice-entry', path, message }];
  }
  if (allowedFrom(place) !== undefined) return [];
  return [{ rule: 'unknown-place', path, message: `src/ has no place called ${place}` }];
}

function checkModule({ path, text }: ProjectFile): readonly Violation[] {
  const facts = readModuleFacts(path, text);
  const violations: Violation[] = checkImports(path, facts);
  const report = (rule: Rule, message: string) => violations.push({ rule, path, message });
  const place = placeOf(path);
  if (!facts.isReadable) report('unreadable', 'the module cannot be parsed');
  if (facts.hasDefaultExport) report('default-export', 'exports have names');
  const name = nameOf(path);
  if (VAGUE_NAME.test(name)) report('file-name', `${name} does not say what the file is about`);
  const lines = text.split('\n').length - 1;
  if (lines > MAX_LINES) report('file-length', `${lines} lines are more than ${MAX_LINES}`);
  if (facts.readsEnvironment && place !== 'outside' && place !== 'config') {
    report('environment', 'only the configuration reads process.env');
  }
  return violations;
}

function checkImports(path: string, { imports }: ModuleFacts): Violation[] {
  const from = placeOf(path);
  const allowed = allowedFrom(from);
  if (from === 'outside' || allowed === undefined) return [];
  const inTest = isTest(path);
  return imports.flatMap((specifier): readonly Violation[] => {
    if (specifier.startsWith('.')) {
      const to = placeOf(posix.join(posix.dirname(path), specifier));
      const targets = inTest ? [...allowed, ...ownSlice(TEST_MAY_ALSO_IMPORT, from)] : allowed;
      if (targets.some((target) => covers(target, to))) return [];
      return [{ rule: 'import-direction', path, message: `${from} may not import ${specifier} (${to})` }];
    }
    if (specifier === 'yaml' && !inTest && !MAY_READ_YAML.has(from)) {
      return [{ rule: 'yaml', path, message: `${from} may not read YAML` }];
    }
    const isPure = from === 'kernel' || from.endsWith('/domain');
    if (isPure && !inTest && !WITHOUT_IO.has(specifier)) {
      return [{ rule: 'no-io', path, message: `${from} does no I/O and may not import ${specifier}` }];
    }
    return [];
  });
}

/** `kernel`, `platform/http`, `dlq/domain`, `dlq/index`, …; everything beside src/ is `outside`. */
function placeOf(path: string): string {
  const [top, first = '', second = ''] = path.split('/');
  if (top !== 'src') return 'outside';
  const isFolder = path.split('/').length > 3;
  if (SLICES.includes(first)) return `${first}/${isFolder ? second : nameOf(second)}`;
  if (first === 'platform' && isFolder) return `platform/${second}`;
  return nameOf(first);
}

function allowedFrom(place: string): readonly string[] | undefined {
  const [top = '', layer = ''] = place.split('/');
  const key = SLICES.includes(top) ? `~/${layer}` : top;
  const allowed = Object.hasOwn(MAY_IMPORT, key) ? MAY_IMPORT[key] : undefined;
  return allowed && ownSlice([...allowed, key], place);
}

function ownSlice(places: readonly string[], from: string): readonly string[] {
  const [slice = ''] = from.split('/');
  return places.map((place) => place.replace('~', slice));
}

function covers(place: string, other: string): boolean {
  return other === place || other.startsWith(`${place}/`);
}

function nameOf(path: string): string {
  return basename(path).replace(/(\.int)?(\.test)?\.ts$/, '');
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts');
}
