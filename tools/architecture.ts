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
  | 'no-packages'
  | 'environment'
  | 'yaml'
  | 'file-name'
  | 'file-length'
  | 'function-length'
  | 'folder-size'
  | 'default-export';

export type Violation = Readonly<{ rule: Rule; path: string; message: string }>;

const SLICES: readonly string[] = ['dlq', 'outbox', 'jobs', 'saga'];

/** The ways through each slice, in the order of an item's life. */
const FLOWS: Readonly<Record<string, readonly string[]>> = {
  dlq: ['ingest', 'redrive', 'browse', 'decide', 'upkeep'],
  outbox: ['accept', 'deliver', 'browse', 'decide', 'upkeep'],
  jobs: ['enqueue', 'run', 'pull', 'push', 'schedule', 'browse', 'decide', 'upkeep'],
  saga: ['define', 'start', 'run', 'browse', 'decide', 'upkeep'],
};

/** Written by a tool, so its length says nothing. */
const GENERATED = 'src/client-http/generated/';

const MAX_LINES = 350;
const MAX_TEST_LINES = 400;
const MAX_FUNCTION_LINES = 70;
const MAX_FILES_IN_FOLDER = 25;
/** Files beside a slice's index.ts, which its flows share. */
const MAX_SHARED_FILES = 10;

/**
 * Every place in src/ and the places it may import from; each may import from itself. `~` is the own slice, and
 * `~/shared` stands for the files beside its index.ts. A name covers the places below it: `platform` covers
 * `platform/http`.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  platform: ['kernel'],
  notify: ['kernel', 'platform'],
  access: ['kernel', 'platform'],
  audit: ['kernel', 'platform'],
  console: ['kernel', 'platform'],
  // Runs in the processes of others: it shares files with these flows, but never the server's.
  sdk: [
    'kernel',
    'platform',
    ...SLICES.map((slice) => `${slice}/domain`),
    'outbox/accept',
    'jobs/shared',
    'jobs/enqueue',
    'jobs/run',
    'saga/define',
    'saga/start',
  ],
  config: ['kernel'],
  // Runs in the processes of others too, and speaks HTTP only.
  'client-http': [],
  cli: ['client-http', 'config', 'compose', 'kernel', 'platform'],
  main: ['compose', 'config', 'cli'],
  client: [],
  compose: ['config', 'kernel', 'platform', 'notify', 'access', 'audit', 'console', 'sdk', 'cli', ...SLICES],
  '~/index': ['~', 'kernel', 'platform'],
  '~/domain': ['kernel'],
  '~/shared': ['~/domain', 'kernel', 'platform'],
  '~/flow': ['~/domain', '~/shared', 'kernel', 'platform'],
};

/** The layers of the web console and what each may import; each may import from itself. A feature has its own. */
const CONSOLE_MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  'console/app': ['console/features', 'console/components', 'console/lib'],
  'console/features': ['console/components', 'console/lib'],
  'console/components': ['console/lib'],
  'console/lib': [],
};
/** The only file of the console that reads types of the server. */
const CONSOLE_DOOR = 'console/lib/server-shapes.ts';

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
  're2js',
  'croner',
]);

/** Workflows are defined in YAML, as the configuration is. */
const MAY_READ_YAML: ReadonlySet<string> = new Set(['config', 'saga/define']);

const VAGUE_NAME = /(^|-)(utils?|helpers?|common|types|managers?)$/;

/** Checks the whole project at once. Only what is under src/ has a place; names, sizes and exports hold everywhere. */
export function checkArchitecture(files: readonly ProjectFile[]): readonly Violation[] {
  const modules = files.filter(({ path }) => /\.tsx?$/.test(path));
  if (!modules.some(({ path }) => path.startsWith('src/'))) {
    return [{ rule: 'nothing-read', path: 'src', message: 'no module was read, so nothing was checked' }];
  }
  return [...files.flatMap(checkPlace), ...checkFolders(files), ...modules.flatMap(checkModule)];
}

function checkPlace({ path }: ProjectFile): readonly Violation[] {
  const place = placeOf(path);
  if (place === 'outside' || place.endsWith('/migrations')) return [];
  const [slice = '', entry = ''] = place.split('/');
  if (SLICES.includes(slice) && !(isSharedEntry(path, entry) || flowsOf(slice).includes(entry))) {
    const message = `a slice has index.ts, shared files, domain/, migrations/ and ${flowsOf(slice).join('/, ')}/`;
    return [{ rule: 'slice-entry', path, message }];
  }
  if (allowedFrom(place) !== undefined) return [];
  return [{ rule: 'unknown-place', path, message: `src/ has no place called ${place}` }];
}

function isSharedEntry(path: string, entry: string): boolean {
  const isBesideIndex = path.split('/').length === 3 && path.endsWith('.ts');
  return isBesideIndex || entry === 'domain';
}

/** Tests and migrations do not count. */
function checkFolders(files: readonly ProjectFile[]): readonly Violation[] {
  const folders = new Map<string, number>();
  for (const { path } of files) {
    const counts = /^(src|console)\/.*\.tsx?$/.test(path) && !isTest(path);
    const isIndex = SLICES.some((slice) => path === `src/${slice}/index.ts`);
    if (counts && !isIndex) folders.set(posix.dirname(path), (folders.get(posix.dirname(path)) ?? 0) + 1);
  }
  return [...folders].flatMap(([path, count]): readonly Violation[] => {
    const isSlice = SLICES.some((slice) => path === `src/${slice}`);
    const max = isSlice ? MAX_SHARED_FILES : MAX_FILES_IN_FOLDER;
    return count > max ? [{ rule: 'folder-size', path, message: `${count} files are more than ${max}` }] : [];
  });
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
  const max = isTest(path) ? MAX_TEST_LINES : MAX_LINES;
  if (lines > max && !path.startsWith(GENERATED))
    report('file-length', `${lines} lines are more than ${max}`);
  if (facts.longestFunction > MAX_FUNCTION_LINES && !isTest(path)) {
    const message = `a function of ${facts.longestFunction} lines is longer than ${MAX_FUNCTION_LINES}`;
    report('function-length', message);
  }
  if (facts.readsEnvironment && place !== 'outside' && place !== 'config') {
    report('environment', 'only the configuration reads process.env');
  }
  return violations;
}

function checkImports(path: string, { imports }: ModuleFacts): Violation[] {
  if (path.startsWith('console/')) return checkConsoleImports(path, imports);
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
    if (from === 'client-http' && !inTest)
      return [
        { rule: 'no-packages', path, message: `the client uses no packages, but imports ${specifier}` },
      ];
    const isPure = from === 'kernel' || from.endsWith('/domain');
    if (isPure && !inTest && !WITHOUT_IO.has(specifier)) {
      return [{ rule: 'no-io', path, message: `${from} does no I/O and may not import ${specifier}` }];
    }
    return [];
  });
}

function checkConsoleImports(path: string, imports: readonly string[]): Violation[] {
  const from = consolePlaceOf(path);
  const layer = from.startsWith('console/features/') ? 'console/features' : from;
  const allowed = CONSOLE_MAY_IMPORT[layer];
  if (allowed === undefined || path === CONSOLE_DOOR) return [];
  return imports
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => consolePlaceOf(posix.join(posix.dirname(path), specifier)))
    .filter((to) => ![from, ...allowed].some((place) => covers(place, to)))
    .map((to) => ({ rule: 'import-direction', path, message: `${from} may not import ${to}` }));
}

/** `console/app`, `console/features/dlq`, `console/components`, …; everything beside it is `outside`. */
function consolePlaceOf(path: string): string {
  const [top, layer = '', feature = ''] = path.split('/');
  if (top !== 'console') return 'outside';
  return layer === 'features' ? `console/features/${feature}` : `console/${layer}`;
}

/** `kernel`, `platform/http`, `dlq/domain`, `dlq/ingest`, `dlq/shared`, …; everything beside src/ is `outside`. */
function placeOf(path: string): string {
  const [top, first = '', second = ''] = path.split('/');
  if (top !== 'src') return 'outside';
  const isFolder = path.split('/').length > 3;
  if (SLICES.includes(first)) return `${first}/${isFolder ? second : sharedPlace(second)}`;
  if (first === 'platform' && isFolder) return `platform/${second}`;
  return nameOf(first);
}

function sharedPlace(file: string): string {
  return file === 'index.ts' ? 'index' : 'shared';
}

function flowsOf(slice: string): readonly string[] {
  return FLOWS[slice] ?? [];
}

function allowedFrom(place: string): readonly string[] | undefined {
  const [top = '', entry = ''] = place.split('/');
  const isFlow = flowsOf(top).includes(entry);
  const key = SLICES.includes(top) ? `~/${isFlow ? 'flow' : entry}` : top;
  const allowed = Object.hasOwn(MAY_IMPORT, key) ? MAY_IMPORT[key] : undefined;
  return allowed && ownSlice([...allowed, isFlow ? `~/${entry}` : key], place);
}

function ownSlice(places: readonly string[], from: string): readonly string[] {
  const [slice = ''] = from.split('/');
  return places.map((place) => place.replace('~', slice));
}

function covers(place: string, other: string): boolean {
  return other === place || other.startsWith(`${place}/`);
}

function nameOf(path: string): string {
  return basename(path).replace(/(\.int)?(\.test)?\.tsx?$/, '');
}

function isTest(path: string): boolean {
  return /\.test\.tsx?$/.test(path);
}
