import { sql, type Sql } from '../postgres/sql.ts';

/**
 * The INSERT that ends acts whose process was lost: for every `started` event of the resource and attempt it adds one
 * with the outcome `unknown`, by the same actor and with the same operation. A part of the statement that takes the
 * item over, so that nobody else ends the act as well.
 */
export function insertUnknown(
  lost: Readonly<{
    /** Rows with the columns `resource`, `attempt` and `why`. */
    from: Sql;
  }>,
): Sql {
  return sql`
    INSERT INTO audit.events
      (kept, actor_type, actor_id, actor_name, roles, action, outcome, reason, resource, topics, queues, destinations,
       workflows, operation_id, item_count, detail, request_id, trace_id, address, agent)
    SELECT e.kept, e.actor_type, e.actor_id, e.actor_name, e.roles, e.action, 'unknown', e.reason, e.resource, e.topics,
           e.queues, e.destinations, e.workflows, e.operation_id, e.item_count,
           jsonb_build_object('attempt', lost.attempt, 'error', lost.why), e.request_id, e.trace_id, e.address, e.agent
    FROM ${lost.from} AS lost (resource, attempt, why)
    JOIN audit.events e ON e.resource = lost.resource
    WHERE e.outcome = 'started' AND e.detail -> 'attempt' = to_jsonb(lost.attempt)`;
}
