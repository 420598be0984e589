import { canonicalJson, sha256Of } from '../../kernel/canonical-json.ts';

/** What must be equal for a repeated key to count as the same order. */
export type DigestedOrder = Readonly<{
  destination: string;
  orderingKey: string | null;
  /** Parsed by `parseExactJson`: for other values the database might compute another digest. */
  request: Readonly<Record<string, unknown>>;
}>;

/** Fields of a request that may differ when the same order is added again. */
const NOT_DIGESTED: ReadonlySet<string> = new Set(['trace_id', 'idempotency_key']);

/** `outbox.request_digest` computes the same in the database. */
export function requestDigest({ destination, orderingKey, request }: DigestedOrder): string {
  const members = Object.entries(request).filter(([name]) => !NOT_DIGESTED.has(name));
  return sha256Of(
    canonicalJson({ destination, ordering_key: orderingKey, request: Object.fromEntries(members) }),
  );
}
