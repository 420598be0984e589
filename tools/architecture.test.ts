import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkArchitecture, type ProjectFile, type Rule } from './architecture.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const TREES = ['src', 'console', 'tools', 'tests', 'bench', 'examples'] as const;

function readProject(): readonly ProjectFile[] {
  return TREES.flatMap((tree) =>
    readdirSync(join(root, tree), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.parentPath.includes('node_modules'))
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        const text = /\.tsx?$/.test(entry.name) ? readFileSync(path, 'utf8') : '';
        return { path: relative(root, path).replaceAll(sep, '/'), text };
      }),
  );
}

test('the project keeps its architecture', () => {
  assert.deepEqual(checkArchitecture(readProject()), []);
});

const manyFiles = (folder: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({ path: `${folder}/file-${n}.ts`, text: '' }));

test('a folder has at most 25 files, and a slice at most ten that its flows share', () => {
  const sizes = (files: readonly ProjectFile[]) => checkArchitecture(files).map(({ rule }) => rule);
  assert.deepEqual(sizes([...manyFiles('src/kernel', 25), ...manyFiles('src/dlq', 10)]), []);
  assert.deepEqual(sizes(manyFiles('src/kernel', 26)), ['folder-size']);
  assert.deepEqual(sizes(manyFiles('src/dlq', 11)), ['folder-size']);
});

test('checking nothing is a violation', () => {
  assert.deepEqual(
    checkArchitecture([{ path: 'tools/build.ts', text: '' }]).map(({ rule }) => rule),
    ['nothing-read'],
  );
});

type Case = readonly [path: string, text: string];

const kept: readonly Case[] = [
  [
    'console/app/frame.tsx',
    "import '../features/dlq/list.tsx'; import '../components/row.tsx'; import 'react';",
  ],
  ['console/features/dlq/list.tsx', "import '../../components/row.tsx'; import '../../lib/text.ts';"],
  ['console/lib/server-shapes.ts', "export type * from '../../src/client-http/index.ts';"],
  ['src/main.ts', "import './compose.ts'; import './config/config.ts'; import './cli/serve.ts';"],
  [
    'src/compose.ts',
    "import './dlq/index.ts'; import './saga/index.ts'; import './platform/http/server.ts';",
  ],
  [
    'src/config/config.ts',
    "import 'yaml'; import './schema.ts'; import '../kernel/errors.ts'; process.env.PORT;",
  ],
  ['src/config/layers/layer.ts', "import '../../kernel/errors.ts'; import 'yaml'; const { env } = process;"],
  [
    'src/cli/serve.ts',
    "import '../config/config.ts'; import '../compose.ts'; import '../platform/postgres/pool.ts';",
  ],
  ['src/kernel/clock.ts', "import 'node:timers/promises'; import './errors.ts';"],
  ['src/kernel/clock.test.ts', "import 'node:test'; import 'fast-check'; import './clock.ts';"],
  [
    'src/platform/http/server.ts',
    "import '../../kernel/errors.ts'; import '../telemetry/log.ts'; import 'fastify';",
  ],
  [
    'src/sdk/outbox.ts',
    "import '../kernel/errors.ts'; import '../platform/postgres/sql.ts'; import '../outbox/domain/order.ts';",
  ],
  [
    'src/sdk/jobs.ts',
    "import '../jobs/domain/job.ts'; import '../jobs/run/work.ts'; import '../jobs/jobs-table.ts';",
  ],
  ['src/client-http/index.ts', "import './api-error.ts'; import './generated/operations.ts';"],
  ['src/client-http/client.test.ts', "import 'node:http'; import './index.ts';"],
  ['src/client-http/generated/schemas.ts', '//\n'.repeat(351)],
  ['src/cli/api/api-client.ts', "import '../../client-http/index.ts';"],
  ['src/notify/group.ts', "import '../platform/postgres/sql.ts';"],
  ['src/access/keys/keys-table.ts', "import '../../platform/postgres/sql.ts';"],
  [
    'src/dlq/index.ts',
    "import './ingest/store.ts'; import './browse/list.ts'; import './present.ts'; import '../platform/http/x.ts';",
  ],
  [
    'src/dlq/domain/message.ts',
    "import '../../kernel/backoff.ts'; import './status.ts'; import 'node:crypto';",
  ],
  ['src/dlq/messages-table.ts', "import './domain/message.ts'; import './present.ts';"],
  [
    'src/dlq/redrive/retry-message.ts',
    "import '../domain/message.ts'; import '../messages-table.ts'; import './claim.ts';",
  ],
  [
    'src/dlq/ingest/decoding/dialects.ts',
    "import '../store.ts'; import '../../../platform/postgres/sql.ts'; import 'pg';",
  ],
  ['src/dlq/migrations/001_create_messages.up.sql', ''],
  [
    'src/dlq/ingest/store.int.test.ts',
    "import '../index.ts'; import '../browse/list.ts'; import '../../../tests/support/database.ts';",
  ],
  ['src/saga/define/workflow.ts', "import { parse } from 'yaml';"],
  ['src/kernel/wide.ts', `function wide() {${'\n'.repeat(69)}}`],
  ['src/kernel/wide.test.ts', `function wide() {${'\n'.repeat(99)}}`],
  ['src/kernel/text.ts', "const said = 'process.env'; // import '../dlq/index.ts' would be wrong here"],
  ['tools/test.ts', "import '../src/dlq/domain/message.ts'; process.env.CI;"],
  ['src/kernel/long.ts', '//\n'.repeat(350)],
];

for (const [path, text] of kept) {
  test(`allowed: ${path} with ${JSON.stringify(text.slice(0, 90))}`, () => {
    assert.deepEqual(checkArchitecture([anchor, { path, text }]), []);
  });
}

const broken: readonly (readonly [rule: Rule, ...Case])[] = [
  ['import-direction', 'src/dlq/domain/message.ts', "import '../messages-table.ts';"],
  ['import-direction', 'src/dlq/domain/message.ts', "import '../../platform/postgres/sql.ts';"],
  ['import-direction', 'src/dlq/domain/message.ts', "import '../index.ts';"],
  ['import-direction', 'src/dlq/redrive/retry-message.ts', "import '../ingest/store.ts';"],
  ['import-direction', 'src/dlq/redrive/retry-message.ts', "import '../browse/find-message.ts';"],
  ['import-direction', 'src/dlq/messages-table.ts', "import './ingest/store.ts';"],
  ['import-direction', 'src/dlq/ingest/store.ts', "import '../index.ts';"],
  ['import-direction', 'src/dlq/ingest/store.ts', "import '../../config/config.ts';"],
  ['import-direction', 'src/dlq/ingest/store.ts', "import '../../../tests/support/database.ts';"],
  ['import-direction', 'src/dlq/index.ts', "import '../outbox/index.ts';"],
  ['import-direction', 'src/dlq/index.ts', "import '../compose.ts';"],
  [
    'import-direction',
    'src/dlq/ingest/store.ts',
    "import type { Order } from '../../outbox/domain/order.ts';",
  ],
  ['import-direction', 'src/dlq/ingest/store.ts', "export { add } from '../../outbox/accept/add.ts';"],
  ['import-direction', 'src/dlq/ingest/store.ts', "export * from '../../jobs/domain/job.ts';"],
  ['import-direction', 'src/dlq/ingest/store.ts', "const jobs = await import('../../jobs/index.ts');"],
  ['import-direction', 'src/dlq/ingest/store.ts', "type Job = import('../../jobs/domain/job.ts').Job;"],
  ['import-direction', 'src/dlq/domain/message.test.ts', "import '../../outbox/domain/order.ts';"],
  ['import-direction', 'src/kernel/clock.ts', "import '../platform/http/server.ts';"],
  ['import-direction', 'src/platform/http/server.ts', "import '../../dlq/domain/message.ts';"],
  ['import-direction', 'src/platform/http/server.ts', "import '../../config/config.ts';"],
  ['import-direction', 'src/notify/group.ts', "import '../outbox/index.ts';"],
  ['import-direction', 'src/dlq/browse/list.ts', "import '../../access/index.ts';"],
  ['import-direction', 'src/sdk/outbox.ts', "import '../outbox/deliver/dispatch.ts';"],
  ['import-direction', 'src/sdk/outbox.ts', "import '../outbox/schemas.ts';"],
  ['import-direction', 'src/sdk/outbox.ts', "import '../outbox/index.ts';"],
  ['import-direction', 'src/sdk/jobs.ts', "import '../jobs/browse/schemas.ts';"],
  ['import-direction', 'src/sdk/jobs.ts', "import '../jobs/index.ts';"],
  ['import-direction', 'src/sdk/outbox.ts', "import '../compose.ts';"],
  ['import-direction', 'src/sdk/outbox.ts', "import '../config/config.ts';"],
  ['import-direction', 'src/config/layers/layer.ts', "import '../../platform/postgres/pool.ts';"],
  ['import-direction', 'src/cli/serve.ts', "import '../dlq/index.ts';"],
  ['import-direction', 'src/main.ts', "import './dlq/index.ts';"],
  ['import-direction', 'src/main.ts', "import './platform/postgres/pool.ts';"],
  ['import-direction', 'src/client-http/index.ts', "import '../kernel/errors.ts';"],
  ['import-direction', 'src/sdk/jobs.ts', "import '../client-http/index.ts';"],
  ['import-direction', 'console/features/dlq/list.tsx', "import '../jobs/list.tsx';"],
  ['import-direction', 'console/features/dlq/list.tsx', "import '../../app/frame.tsx';"],
  ['import-direction', 'console/components/row.tsx', "import '../features/dlq/list.tsx';"],
  ['import-direction', 'console/lib/text.ts', "import '../components/row.tsx';"],
  [
    'import-direction',
    'console/components/row.tsx',
    "import type { Job } from '../../src/client-http/index.ts';",
  ],
  ['no-packages', 'src/client-http/index.ts', "import 'undici';"],
  ['no-io', 'src/kernel/clock.ts', "import 'node:fs';"],
  ['no-io', 'src/kernel/clock.ts', "import type { Client } from 'pg';"],
  ['no-io', 'src/dlq/domain/message.ts', "import { connect } from 'node:net';"],
  ['environment', 'src/platform/http/server.ts', 'const port = process.env.PORT;'],
  ['environment', 'src/cli/serve.ts', "const port = process['env'].PORT;"],
  ['environment', 'src/main.ts', 'const { env, argv } = process;'],
  ['environment', 'src/main.ts', "import { env } from 'node:process';"],
  ['yaml', 'src/dlq/ingest/decoder.ts', "import { parse } from 'yaml';"],
  ['slice-entry', 'src/dlq/shared/x.ts', ''],
  ['slice-entry', 'src/dlq/enqueue/x.ts', ''],
  ['slice-entry', 'src/dlq/schema.sql', ''],
  ['unknown-place', 'src/billing/index.ts', ''],
  ['unknown-place', 'src/globals.ts', ''],
  ['file-name', 'src/kernel/utils.ts', ''],
  ['file-name', 'src/kernel/string-helpers.test.ts', ''],
  ['file-name', 'src/dlq/domain/types.ts', ''],
  ['file-name', 'tests/support/common.ts', ''],
  ['file-name', 'src/platform/http/session-manager.ts', ''],
  ['file-length', 'src/kernel/long.ts', '//\n'.repeat(351)],
  ['function-length', 'src/kernel/wide.ts', `const wide = () => {${'\n'.repeat(70)}};`],
  ['default-export', 'src/kernel/clock.ts', 'export default 1;'],
  ['default-export', 'src/kernel/clock.ts', 'const clock = 1; export { clock as default };'],
  ['unreadable', 'src/kernel/clock.ts', 'export const ='],
];

/** The checker refuses a project without modules, so that every case has one that breaks no rule. */
const anchor: ProjectFile = { path: 'src/kernel/anchor.ts', text: '' };

for (const [rule, path, text] of broken) {
  test(`${rule}: ${path} with ${JSON.stringify(text.slice(0, 90))}`, () => {
    const found = checkArchitecture([anchor, { path, text }]);
    assert.deepEqual(
      found.map((violation) => [violation.rule, violation.path]),
      [[rule, path]],
    );
  });
}
