import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { DocBlock } from '../support/doc-blocks.ts';

/** What a block of code takes for granted, and what the test wants to know of it. */
export type Frame = Readonly<{
  /** The name of its module. */
  name: string;
  imports: string;
  /** The names that the block takes for granted, with their types. */
  given: Readonly<Record<string, string>>;
  /** Names of the block that `run` answers with. */
  results?: readonly string[];
}>;

export type Project = Readonly<{
  /** Compiles all blocks in one go, as strictly as TypeScript can. */
  compile(modules: readonly Module[]): Promise<void>;
  /** Runs a compiled block. */
  run(name: string, given: object): Promise<Record<string, unknown>>;
  remove(): Promise<void>;
}>;

/** `ts` is compiled, `js` only run. */
export type Module = Readonly<{ name: string; language: string; text: string }>;

const root = fileURLToPath(new URL('../../', import.meta.url));
const sdk = join(root, 'src/sdk/index.ts');

export function moduleOf({ name, imports, given, results = [] }: Frame, block: DocBlock): Module {
  const { language } = block;
  const types = Object.entries(given).map(([field, type]) => `${field}: ${type}`);
  const handed = `{ given: { ${types.join('; ')} }; result: Record<string, unknown> }`;
  const text = [
    imports,
    `const { given, result } = globalThis${language === 'ts' ? ` as unknown as ${handed}` : ''};`,
    `const { ${Object.keys(given).join(', ')} } = given;`,
    block.text,
    ...results.map((field) => `result['${field}'] = ${field};`),
    'void result;',
  ].join('\n');
  return { name, language, text };
}

/** A project in which `@redrive/client` is our library, and nothing else is installed but pg, fastify and types. */
export async function createProject(): Promise<Project> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-docs-'));
  const library = join(folder, 'node_modules/@redrive/client');
  await mkdir(library, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  await writeFile(join(library, 'package.json'), '{ "type": "module", "exports": "./index.js" }');
  for (const file of ['index.js', 'index.d.ts'])
    await writeFile(join(library, file), `export * from ${JSON.stringify(sdk)};\n`);
  for (const name of ['pg', 'fastify', '@types'])
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));

  const languages = new Map<string, string>();

  return {
    async compile(modules) {
      const fileOf = ({ name, language }: Module): string => `${name}.${language}`;
      for (const module of modules) {
        await writeFile(join(folder, fileOf(module)), module.text);
        languages.set(module.name, module.language);
      }
      const files = modules.filter(({ language }) => language === 'ts').map(fileOf);
      const compilerOptions = {
        target: 'es2024',
        module: 'nodenext',
        types: ['node'],
        strict: true,
        exactOptionalPropertyTypes: true,
        noUncheckedIndexedAccess: true,
        allowImportingTsExtensions: true,
        noEmit: true,
        // Those of fastify and pg are not ours; ours are sources here, and checked.
        skipLibCheck: true,
      };
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
      const compiler = join(root, 'node_modules/typescript/bin/tsc');
      await promisify(execFile)(process.execPath, [compiler, '--project', folder]).catch(
        (error: Readonly<{ stdout: string }>) => assert.fail(error.stdout),
      );
    },
    async run(name, given) {
      const result: Record<string, unknown> = {};
      Object.assign(globalThis, { given, result });
      // Each run is a module of its own.
      const file = join(folder, `${name}.${languages.get(name)}`);
      await import(`${pathToFileURL(file).href}?${performance.now()}`);
      return result;
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
