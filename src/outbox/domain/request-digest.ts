import { canonicalJson, sha256Of } from '../../kernel/canonical-json.ts';

/** What makes an order the same order when its key comes again. */
export type DigestedOrder = Readonly<{
  destination: string;
  orderingKey: string | null;
  /** As `parseExactJson` gave it: what it refuses has no digest that the database would agree with. */
  request: Readonly<Record<string, unknown>>;
}>;

/** Members of a request that may differ between two attempts to place the same order. */
const NOT_DIGESTED: ReadonlySet<string> = new Set(['trace_id', 'idempotency_key']);

/** `outbox.request_digest` computes the same in the database. */
export function requestDigest({ destination, orderingKey, request }: DigestedOrder): string {
  const members = Object.entries(request).filter(([name]) => !NOT_DIGESTED.has(name));
  return sha256Of(
    canonicalJson({ destination, ordering_key: orderingKey, request: Object.fromEntries(members) }),
  );
}
