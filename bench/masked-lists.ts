import { createProtection, noMasks, type Masks } from '../src/kernel/protect/protection.ts';
import { listJobs } from '../src/jobs/browse/list-jobs.ts';
import { presentListedJob } from '../src/jobs/browse/present-job.ts';
import { stringifyWithRaw } from '../src/platform/http/raw-json.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { openPostgres } from './support.ts';

/**
 * A list of 100 jobs as it is answered, from the query to the JSON, with and without rules; p50 of interleaved rounds.
 * node bench/masked-lists.ts
 */
const rounds = 400;
const rule = { names: {}, fields: [], headers: [], key: false, patterns: [], action: 'mask' as const };
const rules: Readonly<Record<string, Masks>> = {
  'no rules': noMasks,
  fields: createProtection({
    rules: [{ ...rule, fields: ['**.password', '/customer/email'] }],
    patterns: {},
    hashKey: null,
  }).ofEverything(),
  'fields and patterns': createProtection({
    rules: [{ ...rule, fields: ['**.password', '/customer/email'], patterns: ['pan', 'email', 'bearer'] }],
    patterns: {},
    hashKey: null,
  }).ofEverything(),
};

const { db, stop } = await openPostgres();
try {
  const payload = JSON.stringify({
    order_id: 4711,
    customer: { name: 'Ada Lovelace', email: 'ada@example.com', address: ['12 St James', 'London'] },
    items: Array.from({ length: 5 }, (_, n) => ({ sku: `shoe-${n}`, qty: n, price: 19.99 })),
    password: 'hunter2',
  });
  await db.query(sql`
    INSERT INTO jobs.job_queue
      (queue, payload, status, retry_count, error_message, result, completed_at, lease_epoch)
    SELECT 'mail', ${payload}::jsonb, 'dead_letter', 3, 'SMTP 451: mailbox of ada@example.com is busy, try again later',
           '{"sent": false, "attempts": [1, 2, 3]}', clock_timestamp(), nextval('platform.lease_epochs')
    FROM generate_series(1, 5000)`);
  await db.query(sql`ANALYZE jobs.job_queue`);
  const times = new Map<string, number[]>(Object.keys(rules).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const [name, masks] of Object.entries(rules)) {
      const startedAt = performance.now();
      const { jobs } = await listJobs(db, {}, { by: 'keyset', after: null, pageSize: 100 });
      stringifyWithRaw({ jobs: jobs.map((job) => presentListedJob(job, masks)) });
      if (round > 20) times.get(name)?.push(performance.now() - startedAt);
    }
  const median = (name: string): number => {
    const sorted = (times.get(name) ?? []).toSorted((a, b) => a - b);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  process.stdout.write('\nA list of 100 jobs, p50\n');
  for (const name of Object.keys(rules)) {
    const ratio = (median(name) / median('no rules')).toFixed(2);
    process.stdout.write(`  ${name.padEnd(22)} ${median(name).toFixed(1).padStart(6)} ms  ${ratio} x\n`);
  }
} finally {
  await stop();
}
