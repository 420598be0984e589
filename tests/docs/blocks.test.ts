import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Ajv } from 'ajv';
import { Client } from 'pg';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/config.ts';
import { configJsonSchema } from '../../tools/config-json-schema.ts';
import { readWorkflow } from '../../src/saga/define/workflow-yaml.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { readDocBlocks, type DocBlock } from '../support/doc-blocks.ts';
import { checkCommand, commandsIn } from './shell-blocks.ts';

/**
 * Every block of the README and of docs/ that is not code (see code-blocks.test.ts): commands must exist with their
 * arguments, configuration must load, SQL must run. A block that cannot be checked says why.
 */

const notChecked: Readonly<Record<string, string>> = {
  'docs/design/claim-and-settle.md > Claim > sql':
    'it is the form of the statement, with dots for what differs between the slices',
};

/** As editors check the file. */
const isConfig = new Ajv({ keywords: ['errorMessage'], allowUnionTypes: true }).compile(configJsonSchema());

const checks: Readonly<Record<string, (block: DocBlock) => Promise<void> | void>> = {
  sh: checkCommands,
  console: checkCommands,
  yaml: ({ text }) => checkYaml(text),
  json: ({ text }) => void JSON.parse(text),
  sql: ({ text }) => checkSql(text),
  // Compiled and run by code-blocks.test.ts.
  ts: () => {},
  js: () => {},
  // A picture, which GitHub draws.
  mermaid: () => {},
  // Plain text.
  '': () => {},
};

const blocks = await readDocBlocks();
let database: TestDatabase;
let folder: string;

before(async () => {
  database = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), 'redrive-docs-'));
});
after(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

describe('a block of the documents is as it is written', () => {
  for (const block of blocks.filter(({ id }) => !(id in notChecked)))
    test(block.id, async () => {
      const check = checks[block.language];
      assert.ok(check, `nobody knows how to check ${block.language}`);
      await check(block);
    });
});

test('every block that is named here is there', () => {
  const ids = new Set(blocks.map(({ id }) => id));
  assert.deepEqual(
    Object.keys(notChecked).filter((id) => !ids.has(id)),
    [],
  );
});

async function checkCommands({ language, text }: DocBlock): Promise<void> {
  const commands = commandsIn(language, text);
  assert.notEqual(commands.length, 0);
  for (const command of commands) await checkCommand(command);
}

/** A workflow, or else our configuration. */
async function checkYaml(text: string): Promise<void> {
  const value = parse(text) as object;
  if ('steps' in value) return checkWorkflow(text);
  return checkConfig(text);
}

/** With the files that it names, in another place. */
async function checkConfig(text: string): Promise<void> {
  const moved = text.replaceAll('/vault/secrets/', `${folder}/`);
  for (const [, file] of moved.matchAll(new RegExp(`(${folder}/[\\w.-]+)`, 'g')))
    await writeFile(file ?? '', file?.includes('url') === true ? 'https://hooks.example.com/x' : 'a secret');
  const configPath = join(folder, 'config.yaml');
  await writeFile(configPath, moved);
  assert.ok(isConfig(parse(moved)), JSON.stringify(isConfig.errors));
  const { warnings } = loadConfig({ argv: { configPath }, env: {}, secretsDir: '/nonexistent' });
  assert.deepEqual(warnings, []);
}

function checkWorkflow(text: string): void {
  const parsed = readWorkflow(text, null);
  assert.ok(parsed.ok, JSON.stringify(parsed));
}

/** In a transaction that is rolled back, with the roles that it names. */
async function checkSql(text: string): Promise<void> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query('BEGIN');
    const roles = new Set([...text.matchAll(/\b(?:TO|FROM) (\w+);/g)].map(([, role]) => role));
    for (const role of roles)
      if (!new RegExp(`CREATE ROLE ${role}\\b`).test(text)) await client.query(`CREATE ROLE ${role}`);
    await client.query(text);
  } finally {
    await client.end();
  }
}
