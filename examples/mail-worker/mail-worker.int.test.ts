import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Pool } from 'pg';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { untilSessionsEnd } from '../../tests/support/until-sessions-end.ts';
import { signUp } from './sign-up.ts';

const program = fileURLToPath(new URL('mail-worker.ts', import.meta.url));

test('customers who sign up get their mail, those who did not get none, and the worker stops when it is told to', async () => {
  const database = await createTestDatabase();
  const pool = new Pool({ connectionString: database.url });
  await pool.query('CREATE TABLE customers (address text PRIMARY KEY)');
  const worker = spawn(process.execPath, [program], {
    env: { PATH: process.env['PATH'], DATABASE_URL: database.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let sent = '';
    worker.stdout.setEncoding('utf8').on('data', (text: string) => (sent += text));
    await signUp(pool, 'a@example.com');
    await assert.rejects(signUp(pool, 'a@example.com'), { code: '23505' });
    const lost = await signUp(pool, 'b@example.invalid');
    await eventually(() => assert.equal(sent, 'waiting for mails\nto a@example.com: Welcome\n'));
    await eventually(async () => {
      const rows = await database.db.query(sql`
        SELECT status, error_message FROM jobs.job_queue WHERE job_id = ${lost}`);
      const error_message = 'the mail server refuses b@example.invalid: 550';
      assert.deepEqual(rows, [{ status: 'dead_letter', error_message }]);
    });
    worker.kill('SIGTERM');
    assert.deepEqual(await once(worker, 'exit'), [0, null]);
  } finally {
    worker.kill('SIGKILL');
    await pool.end();
    await untilSessionsEnd(database.db);
    await database.drop();
  }
});
