import type { FastifyRequest } from 'fastify';
import { Type, type TSchema } from 'typebox';
import { mayAnywhere } from '../../kernel/access/principal.ts';
import type { Act } from '../../kernel/audit/act.ts';
import { requireAlso } from '../../platform/http/access/guard-access.ts';
import { addActionRoute } from '../../platform/http/action-route.ts';
import { actOf } from '../../platform/http/act-of.ts';
import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, Uuid } from '../../platform/http/schema-parts.ts';
import { invalidField, readUuidField } from '../../platform/http/slice-input.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { isPageOfConsole } from './view-url.ts';
import { addView, changeView, deleteView, listViews, presentView, type ViewContent } from './views-table.ts';

const root = '/api/v1/views';

const Name = Type.String({ minLength: 1, maxLength: 100, pattern: '\\S', examples: ['dead payments'] });
const Url = Type.String({
  minLength: 1,
  maxLength: 2000,
  description: 'A page of the console, from `/` on, with its query.',
  examples: ['/dlq/messages?q=topic%3Apayments.v1'],
});
const Shared = Type.Boolean({
  description: 'Shown to everybody; needs the permission `console:views:share`.',
});

const ViewSchema: TSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    name: Name,
    url: Url,
    shared: Shared,
    owner: Type.String({ examples: ['user:https://idp.example.com/realms/main|7f3c'] }),
    owner_name: Type.String({ examples: ['ada'] }),
  },
  { title: 'SavedView' },
);
const Params = Type.Object({ id: Uuid }, closed);

/** Views are their owner's; they show nothing that their reader may not see. */
export function addViewRoutes(app: HttpApp, db: Database): void {
  app.get(
    root,
    {
      config: { access: 'authenticated' },
      schema: {
        operationId: 'listViews',
        summary: 'List saved views',
        description: 'Those of the caller, then those that others share, if the caller may see the inbox.',
        response: { 200: Type.Object({ views: Type.Array(ViewSchema) }) },
      },
    },
    async (request, reply) => {
      const withShared = mayAnywhere(request.principal, 'console:inbox:view');
      const views = await listViews(db, { owner: actorOf(request), withShared });
      return reply.send({ views: views.map(presentView) });
    },
  );
  addActionRoute(app, {
    path: root,
    access: 'authenticated',
    operationId: 'addView',
    summary: 'Save a view',
    description:
      'A page of the console under a name, which is used once by each owner; 100 at most for each. Needs `console:inbox:view`. Repeating a request adds nothing.',
    errors: [403, 409],
    params: Type.Object({}, closed),
    body: Type.Object({ name: Name, url: Url, shared: Type.Optional(Shared) }, closed),
    answer: ViewSchema,
    act: async ({ body, request }) => {
      requireAlso(request, 'console:inbox:view');
      const content = { name: body.name, url: pageOf(body.url), isShared: body.shared === true };
      return presentView(await addView(db, viewAct(request, content), content));
    },
  });
  addChangeRoutes(app, db);
}

function addChangeRoutes(app: HttpApp, db: Database): void {
  addActionRoute(app, {
    method: 'PATCH',
    path: `${root}/:id`,
    access: 'authenticated',
    operationId: 'changeView',
    summary: 'Change a view of your own',
    description: 'Fields that are left out stay.',
    errors: [403, 404, 409],
    params: Params,
    body: Type.Object(
      { name: Type.Optional(Name), url: Type.Optional(Url), shared: Type.Optional(Shared) },
      closed,
    ),
    answer: ViewSchema,
    act: async ({ params, body, request }) => {
      const id = readUuidField('console', 'id', params.id);
      const { name, url, shared } = body;
      const content: Partial<ViewContent> = {
        ...(name === undefined ? {} : { name }),
        ...(url === undefined ? {} : { url: pageOf(url) }),
        ...(shared === undefined ? {} : { isShared: shared }),
      };
      return presentView(await changeView(db, viewAct(request, content), { id, content }));
    },
  });
  addActionRoute(app, {
    method: 'DELETE',
    path: `${root}/:id`,
    access: 'authenticated',
    operationId: 'deleteView',
    summary: 'Delete a view of your own',
    description: 'Returns the view.',
    errors: [403, 404],
    params: Params,
    answer: ViewSchema,
    act: async ({ params, request }) =>
      presentView(await deleteView(db, viewAct(request, {}), readUuidField('console', 'id', params.id))),
  });
}

function pageOf(url: string): string {
  if (!isPageOfConsole(url)) throw invalidField('console', 'url', 'format', 'must be a page of the console');
  return url;
}

/** Everybody may keep views; to share one is a permission. */
function viewAct(request: FastifyRequest, { isShared }: Partial<ViewContent>): Act {
  if (isShared === true) requireAlso(request, 'console:views:share');
  const act = actOf(request);
  const name = request.principal.type === 'local' ? actorOf(request) : act.actor.name;
  const action =
    isShared === undefined ? 'console:views:change' : isShared ? 'console:views:share' : 'console:views:keep';
  return { ...act, action, actor: { ...act.actor, name } };
}
