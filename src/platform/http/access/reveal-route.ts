import { Type, type Static, type TSchema } from 'typebox';
import type { Permission } from '../../../kernel/access/permissions.ts';
import type { Resource } from '../../../kernel/access/scope.ts';
import { recordReveal } from '../../audit/record-reveal.ts';
import type { Database, Queryable } from '../../postgres/database.ts';
import { addActionRoute } from '../action-route.ts';
import type { HttpApp } from '../http-app.ts';
import { closed, Reason } from '../schema-parts.ts';
import type { PayloadMasks } from './payload-masks.ts';
import type { ItemScope } from './route-access.ts';

/** A route that shows one item as it is stored. */
export type RevealRoute<Params extends TSchema, Id> = Readonly<{
  path: string;
  permission: Permission;
  scope: ItemScope;
  operationId: string;
  /** `a job`. */
  what: string;
  params: Params;
  answer: TSchema;
  idOf: (params: Static<Params>) => Id;
  /** Bytes of the answer; 0 if there is no such item. */
  measure: (id: Id) => Promise<number>;
  /** Throws if there is no such item. */
  find: (tx: Queryable, id: Id) => Promise<Readonly<{ resource: string; names: Resource; shown: object }>>;
}>;

const ReasonBody = Type.Object({ reason: Reason }, closed);

/** The only answer about the item in which nothing is covered. It is on record before it is sent. */
export function addRevealRoute<Params extends TSchema, Id>(
  app: HttpApp,
  { db, masking }: Readonly<{ db: Database; masking: PayloadMasks }>,
  route: RevealRoute<Params, Id>,
): void {
  const { path, permission, scope, operationId, what, params, answer } = route;
  addActionRoute(app, {
    path,
    access: { permission, scope },
    operationId,
    summary: `Show ${what} with its protected parts`,
    description:
      'Returns it as `GET` does, with nothing covered. It is in the audit log with its reason; at most 60 a minute per caller.',
    errors: [404, 429],
    params,
    body: ReasonBody,
    answer,
    async act({ params: given, by, request }) {
      const id = route.idOf(given);
      masking.limitReveals(request);
      await request.reserveAnswer(await route.measure(id));
      return db.transaction(async (tx) => {
        const { resource, names, shown } = await route.find(tx, id);
        await recordReveal(tx, by.act, { resource, names });
        return shown;
      });
    },
  });
}
