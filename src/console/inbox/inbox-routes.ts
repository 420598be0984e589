import type { Static } from 'typebox';
import type { FastifyRequest } from 'fastify';
import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addEntryRoutes } from './entry-routes.ts';
import { InboxQuery, InboxSchema, maxEntries } from './inbox-schemas.ts';
import { listEntries, type InboxDeps, type InboxFilter } from './list-entries.ts';
import { presentList } from './present-entry.ts';

const root = '/api/v1/inbox';
const entryBytes = 2500;

export function addInboxRoutes(app: HttpApp, deps: InboxDeps): void {
  addEntryRoutes(app, deps);
  app.get(
    root,
    {
      config: { access: { permission: 'console:inbox:view', scope: { by: 'any', in: 'list' } } },
      schema: {
        operationId: 'listInbox',
        summary: 'List what needs attention, the most dangerous first',
        description:
          'An entry is a group of items that needs one decision: of messages, orders, jobs, sagas, or of the system itself. It leaves the inbox when its items are gone, and is then listed as done for a day. By hand it can be snoozed until it grows, or marked as done with a reason; it comes back when items arrive after that. The order is: effect unknown, stuck undo, growing, older than an hour, the rest; then by age. Every kind needs the permission to view its items, and is counted over the topics, queues, destinations and workflows that the caller may see. If a slice cannot be read in time, the others are listed and `unavailable` names it.',
        querystring: InboxQuery,
        response: { 200: InboxSchema },
      },
    },
    async (request, reply) => {
      const { limit = maxEntries } = request.query;
      await request.reserveAnswer(limit * entryBytes);
      const list = await listEntries(deps, request.principal, {
        filter: filterOf(request, request.query),
        limit,
      });
      return reply.send(presentList(deps, list));
    },
  );
}

function filterOf(request: FastifyRequest, query: Static<typeof InboxQuery>): InboxFilter {
  const { state = 'open', kind, slice, text, assignee } = query;
  const assignees = assignee?.split(',').map((one) => {
    const name = one.trim();
    return name === 'none' ? null : name === 'me' ? actorOf(request) : name;
  });
  return { state, kind, slice, text, assignees };
}
