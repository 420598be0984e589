import type { Frame } from './run-block.ts';

/** What each block takes for granted: imports, names with their types. Its results are what the test looks at. */

const pgTypes = `import type { ClientBase, Pool } from 'pg';`;

export const frames: Readonly<Record<string, Frame>> = {
  'docs/guides/outbox.md > Outbox: call a partner when your transaction commits > ts': {
    name: 'outbox',
    imports: pgTypes,
    given: { pool: 'Pool' },
  },
  'docs/guides/jobs.md > Jobs: bounded retries > ts': {
    name: 'jobs',
    imports: pgTypes,
    given: {
      pool: 'Pool',
      client: 'ClientBase',
      to: 'string',
      send: '(mail: { to: string }, signal: AbortSignal) => Promise<number>',
    },
    results: ['worker'],
  },
  'docs/guides/sagas.md > Sagas: all done or all undone > ts': {
    name: 'sagas',
    imports: `${pgTypes} import type { FastifyInstance } from 'fastify';`,
    given: {
      pool: 'Pool',
      client: 'ClientBase',
      orderId: 'string',
      app: 'FastifyInstance',
      reserve: '(tx: ClientBase, order: { sku: string; qty: number }) => Promise<{ id: string } | null>',
      release: '(tx: ClientBase, id: string) => Promise<void>',
    },
    results: ['started'],
  },
  'README.md > Call a partner when your transaction commits > ts': {
    name: 'readme-outbox',
    imports: pgTypes,
    given: { client: 'ClientBase' },
    results: ['order'],
  },
  'README.md > Run a job with bounded retries > ts': {
    name: 'readme-jobs',
    imports: pgTypes,
    given: { pool: 'Pool', client: 'ClientBase', to: 'string', send: '(to: string) => Promise<void>' },
    results: ['worker'],
  },
  'README.md > Undo earlier steps when a later one fails > ts': {
    name: 'readme-saga',
    imports: pgTypes,
    given: { client: 'ClientBase', orderId: 'string' },
    results: ['started'],
  },
  'packages/client/README.md > Enqueue and run jobs > ts': {
    name: 'client-jobs',
    imports: pgTypes,
    given: { pool: 'Pool', client: 'ClientBase', send: '(to: string) => Promise<void>' },
    results: ['worker'],
  },
  'packages/client/README.md > Add an outbound request > ts': {
    name: 'client-outbox',
    imports: pgTypes,
    given: { client: 'ClientBase' },
    results: ['order'],
  },
  'packages/client/README.md > Start a saga > ts': {
    name: 'client-saga',
    imports: pgTypes,
    given: { client: 'ClientBase', orderId: 'string' },
    results: ['started'],
  },
  'packages/client/README.md > Guard a saga participant > ts': {
    name: 'client-guard',
    imports: `${pgTypes} import type { RequestListener } from 'node:http';`,
    given: {
      pool: 'Pool',
      app: '{ post(path: string, listener: RequestListener): void }',
      reserve: '(tx: ClientBase, sku: string) => Promise<{ id: string } | null>',
      release: '(tx: ClientBase, id: string) => Promise<void>',
    },
  },
  'docs/reference/configuration.md > Webhook signature > js': {
    name: 'signature',
    imports: `import { createHmac, timingSafeEqual } from 'node:crypto';`,
    given: { request: '', secret: '', bytes: '' },
    results: ['isGenuine'],
  },
  'docs/reference/sdk.md > outbox.add > ts': {
    name: 'sdk-outbox',
    imports: pgTypes,
    given: { tx: 'ClientBase' },
    results: ['added'],
  },
  'docs/reference/sdk.md > jobs.enqueueMany > ts': {
    name: 'sdk-enqueue',
    imports: pgTypes,
    given: { tx: 'ClientBase' },
    results: ['one', 'many'],
  },
  'docs/reference/sdk.md > jobs.workers > ts': {
    name: 'sdk-workers',
    imports: pgTypes,
    given: {
      pool: 'Pool',
      events: 'string[]',
      callPartner: '(payload: { status: number }, signal: AbortSignal) => Promise<number>',
    },
    results: ['workers'],
  },
  'docs/reference/sdk.md > saga.start > ts': {
    name: 'sdk-saga',
    imports: pgTypes,
    given: { tx: 'ClientBase' },
    results: ['checkout', 'started'],
  },
  'docs/reference/sdk.md > sagaGuard > ts': {
    name: 'sdk-guard',
    imports: `${pgTypes} import { createServer } from 'node:http';`,
    given: { pool: 'Pool', packParcel: '(signal: AbortSignal) => Promise<string>' },
    results: ['migration', 'guard', 'charge', 'refund', 'pack', 'http', 'grpc'],
  },
};
