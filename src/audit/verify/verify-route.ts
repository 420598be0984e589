import { Type, type TSchema } from 'typebox';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, nullable } from '../../platform/http/schema-parts.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { verifyChain } from './verify-chain.ts';

const BlockNumber = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const Hash = Type.String({ pattern: '^[0-9a-f]{64}$', examples: ['5f'.repeat(32)] });

const VerifyBody = Type.Object(
  {
    after_block: Type.Optional(BlockNumber),
    anchors: Type.Optional(
      Type.Array(Type.Object({ block: BlockNumber, hash: Hash }, closed), {
        maxItems: 1000,
        description: 'Blocks that were noted outside the database.',
      }),
    ),
  },
  { ...closed, examples: [{ after_block: 0 }] },
);

const VerifiedSchema: TSchema = Type.Object(
  {
    ok: Type.Boolean(),
    blocks: Type.Integer({ description: 'Checked by this call.' }),
    events: Type.Integer({ description: 'Checked by this call.' }),
    first_bad_block: nullable(Type.Integer()),
    problem: nullable(Type.String({ examples: ['events_changed'] })),
    message: nullable(Type.String()),
    next_after_block: nullable(
      Type.Integer({
        description: 'Where the next call continues; null when the chain was followed to its end.',
      }),
    ),
    head: nullable(Type.Object({ block: Type.Integer(), hash: Hash })),
    unsealed: Type.Integer({ description: 'Events that no block has yet.' }),
  },
  { title: 'VerifiedAudit' },
);

export function addVerifyRoute(app: HttpApp, db: Database): void {
  app.post(
    '/api/v1/audit/verify',
    {
      config: { access: { permission: 'audit:events:view' } },
      schema: {
        operationId: 'verifyAudit',
        summary: 'Verify the chain of the audit log',
        description:
          'Compares blocks with events for up to ten seconds, and says where to continue. It ends at the first block that is wrong.',
        body: VerifyBody,
        response: { 200: VerifiedSchema },
      },
    },
    async (request, reply) => {
      const { after_block = 0, anchors = [] } = request.body;
      const checked = await verifyChain(db, { afterBlock: after_block, anchors });
      const { finding, blocks, events, nextAfterBlock, head, unsealed } = checked;
      return reply.send({
        ok: finding === null,
        blocks,
        events,
        first_bad_block: finding?.block ?? null,
        problem: finding?.problem ?? null,
        message: finding?.message ?? null,
        next_after_block: nextAfterBlock,
        head,
        unsealed,
      });
    },
  );
}
