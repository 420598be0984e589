import { isUuid } from '../kernel/uuid.ts';
import { scopeOfItem } from '../platform/http/access/item-scope.ts';
import type { ItemScope } from '../platform/http/access/route-access.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { invalidInput, sagaNotFound } from './saga-errors.ts';

/** Checked here, so that an invalid id never reaches the database. */
export function readSagaId(text: string): string {
  if (!isUuid(text)) throw invalidInput('saga_id', 'format', 'must be a UUID');
  return text.toLowerCase();
}

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
    notFound: sagaNotFound,
  });
}
