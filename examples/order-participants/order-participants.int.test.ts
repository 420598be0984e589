import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createTestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { newStep } from '../../tests/support/guarded-steps.ts';
import { sql } from '../../src/platform/postgres/sql.ts';

const program = fileURLToPath(new URL('order-participants.ts', import.meta.url));

test('an order is done and undone by its three participants, each call repeated, and they stop when told to', async () => {
  const database = await createTestDatabase('empty');
  const services = spawn(process.execPath, [program], {
    env: { PATH: process.env['PATH'], DATABASE_URL: database.url, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let said = '';
    services.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    const urls = await eventually(async () => {
      const found = Object.fromEntries(
        [...said.matchAll(/^(\w+) (http.*)$/gm)].map(([, name, url]) => [name, url]),
      );
      assert.ok(found['shipping'] !== undefined);
      const [account] = await database.db.query(sql`SELECT balance FROM accounts`);
      assert.ok(account);
      return found;
    });
    const order = { order_id: 'o-1', sku: 'shoe', qty: 2, customer: 'alice', amount: 50 };
    const send = async (url: string, headers: unknown): Promise<number> => {
      const body = JSON.stringify(order);
      const answer = await fetch(url, { method: 'POST', headers: headers as Record<string, string>, body });
      return answer.status;
    };
    const steps = [
      ['inventory', 'reserve', 'release'],
      ['payment', 'charge', 'refund'],
      ['shipping', 'dispatch', 'call-back'],
    ] as const;
    const figures = async (): Promise<unknown> =>
      (
        await database.db.query(sql`
        SELECT (SELECT available FROM stock), (SELECT balance FROM accounts),
               (SELECT count(*)::int AS parcels FROM shipments WHERE NOT called_back)`)
      )[0];
    const calls = new Map(steps.map(([name]) => [name, newStep(name)]));
    for (const [name, action] of steps)
      for (let round = 0; round < 2; round += 1)
        await eventually(async () => {
          const headers = calls.get(name)?.action().headers;
          assert.equal(await send(`${urls[name]}/${action}`, headers), 200);
        });
    assert.deepEqual(await figures(), { available: 998, balance: 99_950, parcels: 1 });
    for (const [name, , undo] of steps.toReversed())
      for (let round = 0; round < 2; round += 1)
        assert.equal(await send(`${urls[name]}/${undo}`, calls.get(name)?.undo().headers), 204);
    assert.deepEqual(await figures(), { available: 1000, balance: 100_000, parcels: 0 });
    services.kill('SIGTERM');
    assert.deepEqual(await once(services, 'exit'), [0, null]);
  } finally {
    services.kill('SIGKILL');
    await database.drop();
  }
});
