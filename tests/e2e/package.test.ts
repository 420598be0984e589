import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as library from '@redrive/client';
import { fetchNode } from '../../tools/fetch-node.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  installPacked,
  linkPackage,
  manifestOf,
  packPackages,
  type Manifest,
} from '../support/packed-packages.ts';

/**
 * The packages as a service gets them: packed from a clone in which nothing was built, installed into an empty project
 * with nothing but what they declare as their dependencies, compiled against as strictly as TypeScript can, and run.
 */

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const compiler = join(root, 'node_modules/typescript/bin/tsc');

let scratch: string;
/** Has the client without pg and its types. */
let bare: string;
/** Has both packages and pg. */
let project: string;
let client: string;
let server: string;
let database: TestDatabase;

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'redrive-package-'));
  [bare, project] = [join(scratch, 'bare'), join(scratch, 'bare/project')];
  await packPackages(scratch);
  client = await installPacked('@redrive/client', join(scratch, 'redrive-client-0.1.0.tgz'), bare);
  // The types of Node.js are what a service in TypeScript has anyway.
  await linkPackage('@types/node', bare);
  for (const name of ['pg', '@types/pg']) await linkPackage(name, project);
  server = await installPacked('redrive', join(scratch, 'redrive-0.1.0.tgz'), project);
  database = await createTestDatabase();
});

after(async () => {
  await database?.drop();
  await rm(scratch, { recursive: true, force: true });
});

const strict = {
  target: 'es2023',
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  skipLibCheck: false,
};

async function compile(folder: string, compilerOptions: object, files: readonly string[]): Promise<void> {
  const config = join(folder, 'tsconfig.json');
  await writeFile(config, JSON.stringify({ compilerOptions: { ...strict, ...compilerOptions }, files }));
  await run(process.execPath, [compiler, '--project', config]).catch((error: Readonly<{ stdout: string }>) =>
    assert.fail(error.stdout),
  );
}

describe('@redrive/client', () => {
  const files = ['service.mts', 'service.cts'];

  before(async () => {
    for (const file of files)
      await copyFile(join(root, 'tests/support/client-service.ts'), join(project, file));
  });

  test('a service compiles for ES modules and CommonJS, with module resolution node16 and nodenext', async () => {
    for (const module of ['node16', 'nodenext']) await compile(project, { module, outDir: module }, files);
  });

  for (const version of ['20.12.0', '22.23.3', process.versions.node])
    test(`the service runs on Node ${version}, as ES module and as CommonJS`, async () => {
      const node = version === process.versions.node ? process.execPath : await fetchNode(version);
      for (const extension of ['mjs', 'cjs']) {
        const name = `${extension}-${version.replaceAll('.', '-')}`;
        const env = { ...process.env, DATABASE_URL: database.url };
        const { stdout, stderr } = await run(node, [join(project, `nodenext/service.${extension}`), name], {
          env,
        });
        assert.equal(stderr, '');
        const did = [['created', 'started', 'string'], 'a@example.com', [200, '{"sku":"shoe"}']];
        assert.deepEqual(JSON.parse(stdout), {
          node: `v${version}`,
          did,
          names: Object.keys(library).toSorted(),
        });
      }
    });

  test('its types need none of pg, and take a pool of any kind', async () => {
    await writeFile(join(bare, 'own-pool.mts'), ownPool);
    await compile(bare, { module: 'nodenext', noEmit: true }, ['own-pool.mts']);
  });

  test('with its dependencies it takes less than a megabyte, and there are two', async () => {
    const { dependencies = {} } = await manifestOf(client);
    assert.deepEqual(Object.keys(dependencies), ['@opentelemetry/api', 'canonicalize']);
    let bytes = 0;
    for (const name of ['@redrive/client', ...Object.keys(dependencies)]) {
      const folder = join(bare, 'node_modules', name);
      if (folder !== client) assert.deepEqual((await manifestOf(folder)).dependencies ?? {}, {});
      bytes += await bytesIn(folder);
    }
    assert.ok(bytes < 1_000_000, `${bytes} bytes`);
  });

  test('it holds its code, declarations, README and license, and nothing else', async () => {
    const files = await filesIn(client);
    assert.deepEqual(
      files.filter((file) => !/^dist\/.*\.(js|mjs|d\.ts|d\.mts)$/.test(file)),
      ['LICENSE', 'README.md', 'package.json'],
    );
    assert.deepEqual(
      files.filter((file) => /\.test\.|test-/.test(file)),
      [],
    );
  });
});

const ownPool = `
import { jobs, sagaGuard } from '@redrive/client';
import type { PostgresClient, PostgresPool } from '@redrive/client';
type Mine = PostgresClient & { own: 'mine' };
declare const pool: Omit<PostgresPool, 'connect'> & { connect(): Promise<Mine> };
export const worker = jobs.work({ pool, queue: 'mail', handler: () => {} });
export const guarded = sagaGuard({ pool }).action((tx): 'mine' => tx.own);
`;

describe('redrive', () => {
  test('its library is that of @redrive/client, for a service in TypeScript too', async () => {
    await writeFile(
      join(project, 'server.mts'),
      `import * as client from '@redrive/client';
       import { jobs, type Job } from 'redrive';
       import * as server from 'redrive';
       export type Mine = Job<{ to: string }>;
       const isSame = (name: string): boolean => Reflect.get(client, name) === Reflect.get(server, name);
       console.log(JSON.stringify([client.jobs === jobs, Object.keys(client).every(isSame)]));`,
    );
    await compile(project, { module: 'nodenext', outDir: 'server' }, ['server.mts']);
    const { stdout } = await run(process.execPath, [join(project, 'server/server.mjs')]);
    assert.deepEqual(JSON.parse(stdout), [true, true]);
    assert.equal(
      (await manifestOf(server)).dependencies?.['@redrive/client'],
      (await manifestOf(client)).version,
    );
  });

  test('its command runs what was built, with the migrations and the schemas beside it', async () => {
    const bin = join(server, 'bin/redrive.js');
    const { stdout } = await run(process.execPath, [bin, '--version']);
    assert.equal(stdout, '0.1.0\n');
    const env = { ...process.env, DATABASE_URL: database.url };
    const status = await run(process.execPath, [bin, 'migrate', 'status'], { env, cwd: project });
    assert.match(status.stdout, /applied/);
    assert.doesNotMatch(status.stdout, /pending/);
  });

  test('it holds no test, no source that a test reads, and no second copy of the library', async () => {
    const files = await filesIn(server);
    assert.deepEqual(
      files.filter((file) =>
        /\.test\.|\/test-|fixtures|golden|conformance|src\/|tests\/|dist\/sdk/.test(file),
      ),
      [],
    );
    assert.ok(files.includes('dist/client.d.ts'));
    assert.ok(files.includes('LICENSE'));
    assert.ok(
      files.some((file) => /^dist\/console\/web\/assets\/.*\.js$/.test(file)),
      'the console is missing',
    );
  });
});

test('both packages have one version, and say where they come from', async () => {
  const manifests = [await manifestOf(client), await manifestOf(server)];
  const clone = await manifestOf(join(root, 'src/sdk'));
  for (const { repository, homepage, bugs, license, version } of manifests) {
    assert.equal(version, clone.version);
    assert.equal(license, 'Apache-2.0');
    assert.equal((repository as Manifest)['url'], 'git+https://github.com/redrive/redrive.git');
    assert.match(
      String(homepage),
      /^https:\/\/github\.com\/redrive\/redrive(\/tree\/main\/packages\/client)?#readme$/,
    );
    assert.equal(bugs, 'https://github.com/redrive/redrive/issues');
  }
});

async function filesIn(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .toSorted();
}

async function bytesIn(folder: string): Promise<number> {
  const sizes = (await filesIn(folder)).map(async (file) => (await stat(join(folder, file))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
