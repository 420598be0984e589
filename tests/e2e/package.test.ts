import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createTestDatabase } from '../support/database.ts';

/**
 * The package as a service gets it: packed from a clone in which nothing was built, installed into an empty project
 * with nothing but what it declares as its dependencies, compiled against as strictly as TypeScript can, and run.
 */

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const compiler = join(root, 'node_modules/typescript/bin/tsc');

type Manifest = Readonly<{ dependencies: Readonly<Record<string, string>> } & Record<string, unknown>>;

let scratch: string;
let project: string;

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'redrive-package-'));
  project = join(scratch, 'project');
  const clone = join(scratch, 'clone');
  await cloneTo(clone);
  await run('npm', ['pack', '--pack-destination', scratch], { cwd: clone });
  await install(join(scratch, 'redrive-0.1.0.tgz'));
});

after(() => rm(scratch, { recursive: true, force: true }));

/** What git knows of the working copy, and so nothing that was built. */
async function cloneTo(clone: string): Promise<void> {
  const { stdout } = await run('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
  });
  for (const file of stdout.split('\0').filter((name) => name !== ''))
    await cp(join(root, file), join(clone, file)).catch(ignoreDeleted);
  await symlink(join(root, 'node_modules'), join(clone, 'node_modules'));
}

function ignoreDeleted(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error;
}

async function install(tarball: string): Promise<void> {
  const modules = join(project, 'node_modules');
  const installed = join(modules, 'redrive');
  await mkdir(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  // The types of Node.js are what a service in TypeScript has anyway.
  for (const name of [...Object.keys((await manifestOf(installed)).dependencies), '@types/node']) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(root, 'node_modules', name), join(modules, name));
  }
}

async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as Manifest;
}

const service = `
import { Pool, type ClientBase } from 'pg';
import { defineQueue, jobs, outbox, refuse, saga, sagaGuard, call, service } from 'redrive';

const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });
const mail = defineQueue<{ to: string }>('mail');
const inventory = service('inventory', { reserve: call<{ sku: string }, { id: string }>('POST /reserve') });
const workflow = saga<{ sku: string }>('order', { deadline: '30m' })
  .step('reserve', { do: ({ input }) => inventory.reserve({ sku: input.sku }), undo: 'none' })
  .build();

async function reserve(tx: ClientBase, sku: string): Promise<{ id: string } | null> {
  const { rows } = await tx.query<{ id: string }>('SELECT $1::text AS id', [sku]);
  return rows[0] ?? null;
}
const guard = sagaGuard({ pool });
const guarded = guard.action<{ sku: string }>(async (tx, { body }) => (await reserve(tx, body.sku)) ?? refuse('sold out'));

const client = await pool.connect();
await client.query('BEGIN');
const added = await outbox.add(client, { destination: 'broker', idempotencyKey: 'order-000117', request: { qty: 1 } });
const job = await jobs.enqueue(client, mail, { to: 'a@example.com' });
await client.query('COMMIT');
client.release();

const handled = new Promise<string>((resolve, reject) => {
  const handler = async ({ payload }: { payload: { to: string } }): Promise<void> => resolve(payload.to);
  jobs.work({ pool, queue: mail, handler }).then(async (worker) => { await handled; await worker.stop(); await pool.end(); }, reject);
});
console.log(JSON.stringify([added.outcome, typeof job.jobId, await handled, typeof guarded, workflow.text.includes('reserve')]));
`;

const tsconfig = {
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    noPropertyAccessFromIndexSignature: true,
    skipLibCheck: false,
    outDir: 'built',
  },
  files: ['service.ts'],
};

test('a service compiles against the package without types of its own for pg, and runs', async () => {
  await writeFile(join(project, 'package.json'), '{ "type": "module" }');
  await writeFile(join(project, 'service.ts'), service);
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify(tsconfig));
  await run(process.execPath, [compiler, '--project', project]).catch((error: Readonly<{ stdout: string }>) =>
    assert.fail(error.stdout),
  );
  const database = await createTestDatabase();
  try {
    const env = { ...process.env, DATABASE_URL: database.url };
    const { stdout } = await run(process.execPath, [join(project, 'built/service.js')], { env });
    assert.deepEqual(JSON.parse(stdout), ['created', 'string', 'a@example.com', 'function', true]);
  } finally {
    await database.drop();
  }
});

test('its command runs what was built, with the migrations and the schemas beside it', async () => {
  const bin = join(project, 'node_modules/redrive/bin/redrive.js');
  const { stdout } = await run(process.execPath, [bin, '--version']);
  assert.equal(stdout, '0.1.0\n');
  const database = await createTestDatabase();
  try {
    const env = { ...process.env, DATABASE_URL: database.url };
    const status = await run(process.execPath, [bin, 'migrate', 'status'], { env, cwd: project });
    assert.match(status.stdout, /applied/);
    assert.doesNotMatch(status.stdout, /pending/);
  } finally {
    await database.drop();
  }
});

test('it holds no test, and no source that a test reads', async () => {
  const { stdout } = await run('tar', ['-tzf', join(scratch, 'redrive-0.1.0.tgz')]);
  const files = stdout.split('\n');
  assert.deepEqual(
    files.filter((file) => /\.test\.|\/test-|fixtures|golden|conformance|\/src\/|\/tests\//.test(file)),
    [],
  );
  assert.ok(files.includes('package/dist/sdk/index.d.ts'));
  assert.ok((await stat(join(project, 'node_modules/redrive/LICENSE'))).size > 0);
});

test('it says where it comes from', async () => {
  const { repository, homepage, bugs } = await manifestOf(join(project, 'node_modules/redrive'));
  assert.deepEqual(
    { repository, homepage, bugs },
    {
      repository: { type: 'git', url: 'git+https://github.com/redrive/redrive.git' },
      homepage: 'https://github.com/redrive/redrive#readme',
      bugs: 'https://github.com/redrive/redrive/issues',
    },
  );
});
