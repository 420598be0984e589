import assert from 'node:assert/strict';
import { copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { format } from 'oxfmt';
import { readModuleFacts } from './module-facts.ts';

type Manifest = Readonly<{ dependencies: Readonly<Record<string, string>> }>;

/**
 * Turns what the compiler emitted for src/sdk/index.ts into the package: deletes what neither the code nor its
 * declarations reach (the compiler also emits files that are imported for a type that no declaration shows), adds the
 * entry for ES modules and the license, and fails if anything but the declared dependencies is reached.
 */
export async function finishClient(folder: string): Promise<void> {
  const dist = join(folder, 'dist');
  for (const file of filesIn(dist, '.d.ts'))
    writeFileSync(file, withJsExtensions(readFileSync(file, 'utf8')));
  const code = reach(join(dist, 'sdk/index.js'), requiresOf);
  const types = reach(
    join(dist, 'sdk/index.d.ts'),
    (file) => readModuleFacts(file, readFileSync(file, 'utf8')).imports,
  );
  for (const file of filesIn(dist, '')) if (!code.files.has(file) && !types.files.has(file)) rmSync(file);
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  assert.deepEqual([...code.packages].toSorted(), Object.keys(dependencies).toSorted());
  assert.deepEqual([...types.packages], [], 'the declarations need packages');
  await Promise.all([...code.files].map(indentWithTabs));
  writeModuleEntry(dist);
  copyFileSync(resolve(folder, '../../LICENSE'), join(folder, 'LICENSE'));
}

/** The compiler indents with four spaces, which are a tenth of the code. */
async function indentWithTabs(file: string): Promise<void> {
  const { code, errors } = await format(file, readFileSync(file, 'utf8'), { useTabs: true, printWidth: 160 });
  assert.deepEqual(errors, []);
  writeFileSync(file, code);
}

/** ES modules get the same code: with a second copy of it, a process that uses both would have two states. */
function writeModuleEntry(dist: string): void {
  const names = Object.keys(createRequire(import.meta.url)(join(dist, 'sdk/index.js')) as object).toSorted();
  writeFileSync(join(dist, 'index.mjs'), `export { ${names.join(', ')} } from './sdk/index.js';\n`);
  writeFileSync(join(dist, 'index.d.mts'), `export * from './sdk/index.js';\n`);
}

type Reached = Readonly<{ files: ReadonlySet<string>; packages: ReadonlySet<string> }>;

/** Everything that a file imports, and what that imports. */
function reach(entry: string, importsOf: (file: string) => readonly string[]): Reached {
  const files = new Set([entry]);
  const packages = new Set<string>();
  for (const file of files) {
    for (const specifier of importsOf(file)) {
      if (specifier.startsWith('.'))
        files.add(resolve(dirname(file), specifier).replace(/\.js$/, extensionOf(entry)));
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  }
  return { files, packages };
}

function extensionOf(file: string): string {
  return file.endsWith('.d.ts') ? '.d.ts' : '.js';
}

function requiresOf(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8');
  return Array.from(text.matchAll(/\brequire\(['"]([^'"]+)['"]\)/g), ([, specifier]) => specifier as string);
}

/** The compiler rewrites extensions in the code only. */
function withJsExtensions(declarations: string): string {
  return declarations.replaceAll(/((?:from |import\()['"]\.[^'"]+)\.ts(['"])/g, '$1.js$2');
}

function filesIn(dist: string, extension: string): readonly string[] {
  return globSync(`${dist}/**/*${extension}`, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
