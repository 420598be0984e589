import { randomUUID } from 'node:crypto';
import { Pool, type ClientBase, type PoolClient, type PoolConfig } from 'pg';
import { sagaGuard, type SagaGuard, type SagaGuardOptions } from '../../src/sdk/saga-guard/saga-guard.ts';
import type { GuardRequest } from '../../src/sdk/saga-guard/guard-call.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';

/** The headers of a call, as a saga sends them, for one step of a saga of its own. */
export type StepCalls = Readonly<{
  sagaId: string;
  action(body?: unknown, more?: Readonly<Record<string, string | undefined>>): GuardRequest;
  undo(more?: Readonly<Record<string, string | undefined>>): GuardRequest;
}>;

export function newStep(step = 'reserve'): StepCalls {
  const sagaId = randomUUID();
  const headersOf = (op: 'action' | 'compensate'): Record<string, string> => ({
    'saga-id': sagaId,
    'saga-step': step,
    'saga-op': op,
    'saga-attempt': '1',
    'saga-epoch': '1',
    'idempotency-key': `${sagaId}:${step}:${op}`,
    'saga-started-at': new Date().toISOString(),
    'saga-deadline': inMs(300_000),
  });
  return {
    sagaId,
    action: (body = { sku: 'shoe' }, more) => ({ headers: { ...headersOf('action'), ...more }, body }),
    undo: (more) => ({ headers: { ...headersOf('compensate'), ...more }, body: {} }),
  };
}

export function inMs(ms: number): string {
  return new Date(Date.now() + ms).toISOString();
}

/** The pool of a service. A pool has ended before its connections have, and dropping the database breaks those off. */
export function openServicePool(url: string, more: PoolConfig = {}): Pool {
  const pool = new Pool({ connectionString: url, ...more });
  pool.on('error', () => {}).on('connect', (client) => void client.on('error', () => {}));
  return pool;
}

/** A participant's own database, with the guard's table and one that every effect leaves a row in. */
export type GuardScene = Readonly<{
  database: TestDatabase;
  pool: Pool;
  guard: SagaGuard<PoolClient>;
  errors: unknown[];
  openGuard(pool?: PoolConfig, more?: Partial<SagaGuardOptions<Pool>>): SagaGuard<PoolClient>;
  effect(tx: ClientBase, sagaId: string, kind: string): Promise<void>;
  effectsOf(sagaId: string): Promise<readonly string[]>;
  phaseOf(sagaId: string): Promise<string | null>;
  close(): Promise<void>;
}>;

export async function openGuardScene(): Promise<GuardScene> {
  const database = await createTestDatabase('empty');
  await database.db.query(sql`
    CREATE TABLE effects (id bigint GENERATED ALWAYS AS IDENTITY, saga_id text NOT NULL, kind text NOT NULL)`);
  const errors: unknown[] = [];
  const pools: Pool[] = [];
  const guards: SagaGuard<PoolClient>[] = [];
  const openPool = (more: PoolConfig): Pool => {
    const pool = openServicePool(database.url, { max: 20, ...more });
    pools.push(pool);
    return pool;
  };
  const openGuard: GuardScene['openGuard'] = (own = {}, more = {}) => {
    const guard = sagaGuard({ pool: openPool(own), onError: (error) => void errors.push(error), ...more });
    guards.push(guard);
    return guard;
  };
  const guard = openGuard();
  await guard.migrate();
  return {
    database,
    pool: openPool({}),
    guard,
    errors,
    openGuard,
    async effect(tx, sagaId, kind) {
      await tx.query('INSERT INTO effects (saga_id, kind) VALUES ($1, $2)', [sagaId, kind]);
    },
    async effectsOf(sagaId) {
      const rows = await database.db.query<{ kind: string }>(sql`
        SELECT kind FROM effects WHERE saga_id = ${sagaId} ORDER BY id`);
      return rows.map(({ kind }) => kind);
    },
    async phaseOf(sagaId) {
      const [row] = await database.db.query<{ phase: string }>(sql`
        SELECT phase FROM public.redrive_saga_steps WHERE saga_id = ${sagaId}`);
      return row?.phase ?? null;
    },
    async close() {
      await Promise.all(guards.map((each) => each.stop()));
      await Promise.all(pools.map((each) => each.end()));
      await database.drop();
    },
  };
}
