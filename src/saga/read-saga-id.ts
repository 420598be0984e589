import { isUuid } from '../kernel/uuid.ts';
import { scopeOfItem } from '../platform/http/access/item-scope.ts';
import type { ItemScope, RouteAccess } from '../platform/http/access/route-access.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { invalidInput, sagaNotFound } from './saga-errors.ts';
import { isSagaOf } from './saga-table.ts';

/** Checked here, so that an invalid id never reaches the database. */
export function readSagaId(text: string): string {
  if (!isUuid(text)) throw invalidInput('saga_id', 'format', 'must be a UUID');
  return text.toLowerCase();
}

/** Programs that start sagas see those that they started. */
export const viewSagas = {
  permission: 'saga:sagas:view',
  own: ['saga:sagas:start'],
} as const satisfies RouteAccess;

/** A role may be narrowed to workflows; the saga's workflow counts. */
export function sagaScope(db: Queryable): ItemScope {
  return scopeOfItem('workflows', {
    param: 'saga_id',
    read: readSagaId,
    async namesOf(sagaId) {
      const rows = await db.query<{ name: string }>(sql`
        SELECT workflow_name AS name FROM saga.saga_states WHERE id = ${sagaId}
        UNION ALL
        SELECT workflow_name AS name FROM saga.saga_states_archive WHERE id = ${sagaId}`);
      return rows.length === 0 ? undefined : rows.map(({ name }) => name);
    },
    async isOwn(sagaId, subject) {
      const rows = await db.query(sql`
        SELECT 1 FROM saga.saga_states t WHERE t.id = ${sagaId} AND ${isSagaOf(subject)}
        UNION ALL
        SELECT 1 FROM saga.saga_states_archive t WHERE t.id = ${sagaId} AND ${isSagaOf(subject)}`);
      return rows.length > 0;
    },
    notFound: sagaNotFound,
  });
}
