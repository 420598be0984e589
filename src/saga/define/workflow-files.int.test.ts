import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { emptySagas } from '../../../tests/support/empty-sagas.ts';
import { createLogger } from '../../platform/telemetry/logger.ts';
import { MAX_WORKFLOW_BYTES, readWorkflow } from './workflow-yaml.ts';
import type { KnownServices } from '../domain/workflow/parse-workflow.ts';
import { listWorkflows, storeWorkflow } from './workflows-table.ts';
import { createWorkflowFiles, type BadFile } from './workflow-files.ts';
import { workflowsCheck } from './workflows-check.ts';

let database: TestDatabase;
let scratch: string;
let directory: string;
before(async () => {
  database = await createTestDatabase();
  scratch = await mkdtemp(join(tmpdir(), 'workflows-'));
});
after(async () => {
  await rm(scratch, { recursive: true });
  await database.drop();
});
beforeEach(async () => {
  directory = await mkdtemp(join(scratch, 'case-'));
  await emptySagas(database.db);
});

const services: KnownServices = new Map([['shop', { type: 'http', isIdempotent: true }]]);
const lines: string[] = [];

async function readFolder(from = directory): Promise<readonly BadFile[]> {
  lines.length = 0;
  const files = createWorkflowFiles({
    db: database.db,
    directory: from,
    services,
    askMethods: async () => 'any',
    log: createLogger({
      service: 'test',
      version: '0',
      environment: 'test',
      level: 'warn',
      stream: { write: (line) => void lines.push(line) },
    }),
  });
  await files.start();
  await files.stop(AbortSignal.abort());
  return files.bad();
}

const write = (name: string, text: string | Buffer): Promise<void> => writeFile(join(directory, name), text);

const yaml = (name: string, method = 'POST /reserve', service = 'shop'): string =>
  `name: ${name}\nsteps:\n  - { name: reserve, service: ${service}, method: ${method} }\n`;

async function current(): Promise<Readonly<Record<string, string>>> {
  const workflows = await listWorkflows(database.db);
  return Object.fromEntries(
    workflows.map(({ workflow }) => [workflow.name, workflow.steps[0]?.method ?? '']),
  );
}

test('every workflow of the folder is registered, and other files are left alone', async () => {
  await write('b.yml', yaml('second'));
  await write('a.yaml', yaml('first'));
  await write('notes.txt', 'no workflow');
  await write('old.yaml.bak', 'no workflow');
  assert.deepEqual(await readFolder(), []);
  assert.deepEqual(await current(), { first: 'POST /reserve', second: 'POST /reserve' });
});

test('a folder that is not there is empty; one that is no folder is told', async () => {
  assert.deepEqual(await readFolder(join(directory, 'nowhere')), []);
  await write('file', '');
  assert.match((await readFolder(join(directory, 'file')))[0]?.reason ?? '', /cannot be read: ENOTDIR/);
});

test('a bad file is skipped and says why; the others are registered', async () => {
  await write('1-broken.yaml', 'name: [');
  await write('2-service.yaml', yaml('other', 'POST /x', 'shoop'));
  await write('3-latin.yaml', Buffer.from([0x6e, 0xe4]));
  await write('4-large.yaml', `#${' '.repeat(MAX_WORKFLOW_BYTES)}\n${yaml('large')}`);
  await mkdir(join(directory, '5-folder.yaml'));
  await symlink(join(directory, 'nowhere'), join(directory, '6-dangling.yaml'));
  await write('7-empty.yaml', '');
  await write('8-nul.yaml', 'name: "a\\0"\nsteps: []\n');
  await write('9-good.yaml', yaml('good'));
  const bad = await readFolder();
  const reasons = new Map(bad.map(({ file, reason }) => [file, reason]));
  assert.deepEqual(
    [...reasons.keys()].map((file) => file[0]),
    ['1', '2', '3', '4', '5', '6', '7', '8'],
  );
  assert.match(reasons.get('1-broken.yaml') ?? '', /line \d+, column \d+: is not valid YAML/);
  assert.match(
    reasons.get('2-service.yaml') ?? '',
    /step reserve: service: there is no service shoop.*did you mean shop/,
  );
  assert.match(reasons.get('3-latin.yaml') ?? '', /not UTF-8/);
  assert.match(reasons.get('4-large.yaml') ?? '', /not be larger/);
  assert.match(reasons.get('5-folder.yaml') ?? '', /not a regular file/);
  assert.match(reasons.get('6-dangling.yaml') ?? '', /ENOENT/);
  assert.equal(lines.length, 8);
  assert.match(lines[1] ?? '', /2-service\.yaml.*"msg":"skipped bad workflow file"/);
  assert.deepEqual(Object.keys(await current()), ['good']);
});

test('of two files with one workflow the second is bad', async () => {
  await write('a.yaml', yaml('same', 'POST /first'));
  await write('b.yaml', yaml('same', 'POST /second'));
  assert.deepEqual(await readFolder(), [
    { file: 'b.yaml', reason: 'the workflow same is already defined in a.yaml' },
  ]);
  assert.deepEqual(await current(), { same: 'POST /first' });
});

test('what was never seen becomes current, and what is known changes nothing', async () => {
  await write('a.yaml', yaml('order', 'POST /v1'));
  await readFolder();
  const posted = readWorkflow(yaml('order', 'POST /posted'), services);
  assert.ok(posted.ok);
  await storeWorkflow(database.db, posted.workflow, { isFromFile: false });
  await readFolder();
  assert.deepEqual(await current(), { order: 'POST /posted' }, 'a restart does not revert it');
  await write('a.yaml', yaml('order', 'POST /v2'));
  await readFolder();
  assert.deepEqual(await current(), { order: 'POST /v2' });
  await write('a.yaml', `# the same, written differently\n${yaml('order', 'POST /v1')}`);
  await readFolder();
  assert.deepEqual(await current(), { order: 'POST /v2' });
});

test('several processes that start at once register the same', async () => {
  for (let i = 0; i < 5; i++) await write(`${i}.yaml`, yaml(`workflow-${i}`));
  const bad = await Promise.all(Array.from({ length: 4 }, () => readFolder()));
  assert.deepEqual(bad.flat(), []);
  assert.equal(Object.keys(await current()).length, 5);
});

test('readiness is degraded by a bad file, and by a workflow whose service is not configured', async () => {
  const check = (badFiles: readonly BadFile[], known = ['shop']) =>
    workflowsCheck(database.db, {
      badFiles: () => badFiles,
      services: known,
      methodProblems: () => [],
    }).check(AbortSignal.timeout(1000));
  await write('a.yaml', yaml('order'));
  assert.deepEqual(await check(await readFolder()), { status: 'healthy' });
  assert.deepEqual(await check([], []), {
    status: 'degraded',
    message: 'order calls shop, which is not configured here',
  });
  await write('b.yaml', 'name: x');
  const degraded = await check(await readFolder());
  assert.equal(degraded.status, 'degraded');
  assert.match(degraded.message ?? '', /^b\.yaml: steps: must have at least one step/);
});
