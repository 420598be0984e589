import { Pool } from 'pg';
import { createInventory } from './inventory.ts';
import { createPayment } from './payment.ts';
import { serve, type RunningService } from './serve.ts';
import { createShipping } from './shipping.ts';

/**
 * Runs the three participants in one process. In production each would have its own database; here they share one, with
 * one table of the guard.
 */
const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });
pool.on('error', (error) => process.stderr.write(`lost an idle connection: ${error.message}\n`));
const create = [createInventory, createPayment, createShipping];
const firstPort = Number(process.env['PORT'] ?? 4101);

const running: RunningService[] = [];
for (const [index, each] of create.entries()) {
  const service = await each(pool);
  const started = await serve(service, firstPort === 0 ? 0 : firstPort + index);
  running.push(started);
  process.stdout.write(`${service.name} ${started.url}\n`);
}
await pool.query(`
  INSERT INTO stock VALUES ('shoe', 1000) ON CONFLICT DO NOTHING;
  INSERT INTO accounts VALUES ('alice', 100000) ON CONFLICT DO NOTHING`);

for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    void Promise.all(running.map((each) => each.stop())).then(() => pool.end());
  });
