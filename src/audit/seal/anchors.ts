import { dayMs } from '../../kernel/duration.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import type { Seal } from '../chain.ts';

/** The outbox destination of the blocks. */
const anchorDestination = '_audit_anchors';

export type AddOrders = (
  tx: Queryable,
  orders: readonly Readonly<{ destination: string; id: string; request: unknown; orderingKey: string }>[],
) => Promise<void>;

export type AnchorSettings = Readonly<{
  kafka: Readonly<{ enabled: boolean; publishTimeoutMs: number }>;
  outbox: Readonly<{ leaseMs: number; batchSize: number; parallelism: number }>;
  audit: Readonly<{ anchorTopic?: string | undefined }>;
}>;

/** The internal destination for the outbox; none without a topic. Anchors are delivered however long Kafka is away. */
export function anchorDestinations({ kafka, outbox, audit }: AnchorSettings) {
  if (!kafka.enabled || audit.anchorTopic === undefined) return [];
  return [
    {
      name: anchorDestination,
      type: 'kafka' as const,
      topic: audit.anchorTopic,
      key: 'ordering_key' as const,
      maxAgeMs: 3650 * dayMs,
      retryMax: 100_000,
      // Must be shorter than the lease, or nothing would be sent.
      timeoutMs: Math.min(kafka.publishTimeoutMs, Math.ceil(outbox.leaseMs / 2)),
      maxInFlight: outbox.batchSize * outbox.parallelism,
      schema: undefined,
    },
  ];
}

/** Sends each block in the transaction that stores it: `{block, hash, …}`, as `POST /api/v1/audit/verify` takes it. */
export function createAddAnchors(addOrders: AddOrders) {
  return (tx: Queryable, seals: readonly Seal[]): Promise<void> =>
    addOrders(
      tx,
      seals.map((seal) => ({
        destination: anchorDestination,
        // Of one block there is one anchor.
        id: `block-${seal.block}-${seal.hash.slice(0, 16)}`,
        orderingKey: 'audit',
        request: seal,
      })),
    );
}
