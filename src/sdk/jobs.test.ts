import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';
import type { Pool } from 'pg';
import {
  defineQueue,
  jobs,
  type EnqueueOptions,
  type Job,
  type StandardSchema,
  type Transaction,
} from './index.ts';
import { neededMigrations } from './require-jobs-schema.ts';

/** What is refused is refused before anything is asked, so no transaction can suffer from it. */
const untouched: Transaction = { query: () => assert.fail('the database was asked') };

type Mail = Readonly<{ to: string }>;

/** As any library writes it that speaks Standard Schema. */
const mailSchema: StandardSchema<Mail, Mail & { read: true }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => {
      const { to } = value as { to?: unknown };
      if (typeof to === 'string') return { value: { to, read: true } };
      return { issues: [{ message: 'must be a text', path: ['to', { key: 0 }] }, { message: 'is no mail' }] };
    },
  },
};

const unstorable: readonly (readonly [what: string, payload: unknown, reason: RegExp])[] = [
  ['nothing', undefined, /payload has no JSON form/],
  ['a function', () => 1, /holds a function/],
  ['NaN', { n: Number.NaN }, /holds NaN at "n"/],
  ['a bigint', [1n], /holds a bigint/],
  ['a map', { all: new Map() }, /holds a Map/],
  ['NUL', { text: 'a\0b' }, /payload: text must not contain NUL/],
  ['half a character', ['\ud800'], /payload: 0 must not contain NUL or a lone surrogate/],
  ['a prototype', JSON.parse('{"__proto__": 1}'), /must not be used as a name/],
  ['too much', 'x'.repeat(1024 * 1024), /larger than 1048576 bytes/],
  [
    'short numbers that PostgreSQL writes as long ones',
    Array(60_000).fill(1e308),
    /takes 1\d{7} bytes as PostgreSQL writes it; at most 16777216/,
  ],
  ['itself', itself(), /no JSON form: .*circular/],
  ['too many levels', nested(600), /nested deeper than 512/],
];

function itself(): unknown {
  const value: Record<string, unknown> = {};
  value['self'] = value;
  return value;
}

function nested(depth: number): unknown {
  return depth === 0 ? 1 : [nested(depth - 1)];
}

for (const [what, payload, reason] of unstorable)
  test(`a payload that is or holds ${what} is rejected, alone and among others`, async () => {
    const refusal = (message: RegExp) => ({ code: 'SYS_JOBS_INVALID', kind: 'validation', message });
    await assert.rejects(jobs.enqueue(untouched, 'mail', payload), refusal(reason));
    const many = jobs.enqueueMany(untouched, 'mail', [{ payload: 1 }, { payload }]);
    await assert.rejects(many, refusal(new RegExp(`^jobs\\[1\\]\\..*${reason.source}`)));
  });

const wrongOptions: readonly (readonly [what: string, options: unknown, reason: RegExp])[] = [
  ['an empty dedupe key', { dedupeKey: '' }, /dedupeKey is not a text/],
  ['a dedupe key that is too long', { dedupeKey: 'é'.repeat(501) }, /dedupeKey is not a text/],
  ['a dedupe key with NUL', { dedupeKey: '\0' }, /dedupeKey must not contain NUL/],
  ['a priority beyond 100', { priority: 101 }, /priority is not a whole number from 0 to 100/],
  ['half a priority', { priority: 0.5 }, /priority is not/],
  ['a time that is none', { runAt: new Date(Number.NaN) }, /runAt is not a Date/],
  ['a time as a text', { runAt: '2026-01-01' }, /runAt is not a Date/],
  ['no retries at all', { maxRetries: 0 }, /maxRetries is not a whole number from 1/],
];

for (const [what, options, reason] of wrongOptions)
  test(`${what} is rejected`, () =>
    assert.rejects(jobs.enqueue(untouched, 'mail', {}, options as EnqueueOptions), reason));

test('a queue name is validated', async () => {
  for (const name of ['', 'Mail', 'mäil', '1st', 'a b', 'a'.repeat(101), null, 7])
    await assert.rejects(jobs.enqueue(untouched, name as string, {}), /a queue name is/);
  assert.throws(() => defineQueue('a/b'), /a queue name is .* not "a\/b"/);
});

test('a payload that does not match the schema is rejected with its reasons', async () => {
  const mail = defineQueue('mail', mailSchema);
  await assert.rejects(
    jobs.enqueue(untouched, mail, { to: 7 as unknown as string }),
    /payload does not match the schema of mail: to\.0: must be a text; is no mail/,
  );
  const strict = defineQueue('strict', (payload: unknown): number => {
    if (typeof payload === 'number') return payload;
    throw new Error('not a number');
  });
  await assert.rejects(jobs.enqueue(untouched, strict, 'x' as never), /schema of strict: not a number/);
});

test('a job is added as it was at the call, even if its schema is slow', async () => {
  const sent: unknown[] = [];
  const rows = [{ job_id: 'one', status: 'pending', is_duplicate: 'false' }];
  const tx: Transaction = {
    query: async (_text, values) => {
      sent.push(values.slice(0, 3));
      return { rows };
    },
  };
  const slow = defineQueue('slow', (payload: unknown) => payload);
  const payload = { n: 1 };
  const options = { dedupeKey: 'a' };
  const first = jobs.enqueue(tx, slow, payload, options);
  payload.n = 2;
  options.dedupeKey = 'b';
  await Promise.all([first, jobs.enqueue(tx, slow, payload, options)]);
  assert.deepEqual(sent, [
    ['slow', '{"n":1}', 'a'],
    ['slow', '{"n":2}', 'b'],
  ]);
});

test('an invalid client is rejected', () =>
  assert.rejects(jobs.enqueue({} as Transaction, 'mail', {}), /tx is no client with query/));

test('an empty list sends no statement', async () => {
  assert.deepEqual(await jobs.enqueueMany(untouched, 'mail', []), []);
});

test('workers need a pool, a handler and sensible numbers', async () => {
  assert.throws(() => jobs.workers({ pool: undefined as never }), /need a pool/);
  const pool = { connect: () => assert.fail('the database was asked') } as never;
  const handler = (): void => {};
  for (const wrong of [{ concurrency: 0 }, { concurrency: 1.5 }, { timeoutMs: 0 }, { maxPrefetch: -1 }])
    await assert.rejects(jobs.work({ pool, queue: 'mail', handler, ...wrong }), RangeError);
  await assert.rejects(
    jobs.work({ pool, queue: 'mail', handler, leaseMs: 1 }),
    /leaseMs must be a whole number/,
  );
  await assert.rejects(
    jobs.work({ pool, queue: 'mail', handler: null as never }),
    /handler is not a function/,
  );
});

test('workers require the newest migrations of the slice', () => {
  const files = readdirSync(new URL('../jobs/migrations/', import.meta.url));
  assert.equal(files.filter((file) => file.endsWith('.up.sql')).length, neededMigrations.jobs);
});

/** Never run: what does not fit must not compile. */
export function typesThatHold(pool: Pool): void {
  const mail = defineQueue('mail', mailSchema);
  const count = defineQueue('count', (payload: unknown) => Number(payload));
  const promised = defineQueue<Mail>('promised');
  void jobs.work({ pool, queue: mail, handler: ({ payload }) => payload.read satisfies true });
  void jobs.work({ pool, queue: count, handler: ({ payload }) => payload.toFixed() });
  void jobs.work({ pool, queue: promised, handler: ({ payload }) => payload.to.length });
  void jobs.work({ pool, queue: 'plain', handler: ({ payload }: Job<Mail>) => payload.to });
  // @ts-expect-error: nothing is known of this payload
  void jobs.work({ pool, queue: 'plain', handler: ({ payload }) => payload.to });
  void jobs.enqueue(pool, mail, { to: 'a@example.com' });
  // @ts-expect-error: a mail has somebody that it goes to
  void jobs.enqueue(pool, mail, { too: 'a@example.com' });
  // @ts-expect-error: a count is a number
  void jobs.enqueueMany(pool, count, [{ payload: 'one' }]);
}
