import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Service } from '../../kernel/service.ts';
import { sql } from '../../platform/postgres/sql.ts';
import {
  createPostgresRetention,
  type AuditMaintenance,
  type Purged,
  type Retention,
} from './postgres-retention.ts';
import { createRetentionService } from './retention-service.ts';

let database: TestDatabase;
let retention: Retention;
before(async () => {
  database = await createTestDatabase();
  retention = createPostgresRetention(database.db, { ledgerTtlMs: 1000, auditRetentionMs: 400 * 86_400_000 });
});
after(() => database.drop());

type Watched = Readonly<{
  service: Service;
  purged: Purged[];
  maintained: AuditMaintenance[];
  errors: unknown[];
  /** Resolves when the service has reported something that makes it true. */
  until(isReached: () => boolean): Promise<void>;
}>;

function watch(parts: Retention, owner = 'worker-1'): Watched {
  const [purged, maintained, errors]: [Purged[], AuditMaintenance[], unknown[]] = [[], [], []];
  const waiting = new Set<() => void>();
  const note =
    <T>(list: T[]) =>
    (item: T): void => {
      list.push(item);
      for (const look of waiting) look();
    };
  const service = createRetentionService(createTestWorker(database.db, owner), {
    retention: parts,
    purgeEveryMs: 5,
    maintainAuditEveryMs: 5,
    onPurged: note(purged),
    onAuditMaintained: note(maintained),
    onError: note(errors),
  });
  const until = (isReached: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!isReached()) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  return { service, purged, maintained, errors, until };
}

const soon = (): AbortSignal => AbortSignal.timeout(5000);

test('it purges and looks after the audit at once, and again and again', async () => {
  await database.db.query(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, next_attempt_at, updated_at, destination)
    VALUES ('_notify_ops:1', '{}', 'sha256:1', 'sent', now(), now() - interval '1 hour', '_notify_ops')`);
  const { service, purged, maintained, errors, until } = watch(retention);
  await service.start();
  await until(() => purged.length >= 3 && maintained.length >= 3);
  await service.stop(soon());
  assert.deepEqual(purged[0], { archived: 0, deleted: 1, forgotten: 0 });
  assert.deepEqual(maintained[0], { outcome: 'done', made: 0, adopted: 0, dropped: 0 });
  assert.deepEqual(errors, []);
});

test('only one replica works at a time', async () => {
  const [one, two] = [watch(retention, 'one'), watch(retention, 'two')];
  await one.service.start();
  await one.until(() => one.purged.length > 0);
  await two.service.start();
  await one.until(() => one.purged.length > 5);
  assert.deepEqual([two.purged.length, two.maintained.length], [0, 0]);
  await one.service.stop(soon());
  await two.service.stop(soon());
});

test('an audit that cannot be looked after does not keep orders from being purged', async () => {
  const broken = { ...retention, maintainAudit: () => Promise.reject(new Error('no')) };
  const { service, purged, errors, until } = watch(broken);
  await service.start();
  await until(() => purged.length >= 3 && errors.length === 1);
  await service.stop(soon());
});
