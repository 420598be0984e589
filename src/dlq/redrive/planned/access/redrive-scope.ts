import { namesAllowed } from '../../../../kernel/access/principal.ts';
import { passes } from '../../../../kernel/access/scope.ts';
import { scopeOfItem } from '../../../../platform/http/access/item-scope.ts';
import type { ItemScope } from '../../../../platform/http/access/route-access.ts';
import { actorOf } from '../../../../platform/http/actor.ts';
import { readUuidField } from '../../../../platform/http/slice-input.ts';
import type { Queryable } from '../../../../platform/postgres/database.ts';
import { sql } from '../../../../platform/postgres/sql.ts';
import { redriveNotFound } from '../redrives-table.ts';

export const readId = (id: string): string => readUuidField('dlq', 'id', id);

/**
 * A role may be narrowed to topics: it covers a redrive if it covers all its topics, of messages and of targets, also
 * those of excluded messages. Before a plan has topics, only its creator sees it.
 */
export function redriveScope(db: Queryable): ItemScope {
  const find = async (
    id: string,
  ): Promise<Readonly<{ topics: readonly string[]; actor: string }> | undefined> => {
    const [row] = await db.query<Readonly<{ topics: readonly string[]; actor: string }>>(sql`
      SELECT COALESCE(topics, '{}') AS topics, actor FROM dlq.redrives WHERE id = ${id}`);
    return row;
  };
  return {
    ...scopeOfItem('topics', {
      param: 'id',
      read: readId,
      namesOf: async (id) => (await find(id))?.topics,
      notFound: redriveNotFound,
    }),
    async isCovered(request, permission) {
      const redrive = await find(readId((request.params as Readonly<{ id: string }>).id));
      if (redrive === undefined) return false;
      if (redrive.topics.length === 0) return redrive.actor === actorOf(request);
      const names = namesAllowed(request.principal, permission, 'topics');
      return redrive.topics.every((topic) => passes(names, topic));
    },
  };
}
