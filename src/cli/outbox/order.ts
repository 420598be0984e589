import type { Column, Tone } from '../output/render-table.ts';

/** The fields of an order that the commands read. */
export type Order = Readonly<{
  /** May exceed 2^53, so it is printed but never computed with. */
  id: number;
  idempotency_key: string;
  destination: string;
  status: string;
  retry_count: number;
  next_attempt_at: string | null;
  last_error: string | null;
  fingerprint: string | null;
  ordering_key: string | null;
  ordering_seq: number | null;
  held: boolean;
  trace_id: string | null;
  first_sent_at: string | null;
  in_doubt: boolean;
  resolution: string | null;
  needs_attention: boolean;
  supersedes_id: number | null;
  superseded_by_id: number | null;
  /** A text if all of it is masked. */
  response: Response | string | null;
  request: unknown;
  request_digest: string | null;
  masked?: true;
  created_at: string;
  updated_at: string;
  archived: boolean;
  /** Older servers do not send it. */
  created_by?: string | null;
}>;

export type Response = Readonly<{
  status: number | null;
  digest: string | null;
  broker_order_id: string | null;
}>;

export const statuses = ['queued', 'sending', 'sent', 'failed', 'dead'] as const;

const tones: Readonly<Record<string, Tone>> = {
  queued: 'strong',
  sending: 'strong',
  sent: 'good',
  failed: 'doubtful',
  dead: 'bad',
};

export function toneOf({ status }: Pick<Order, 'status'>): Tone {
  return tones[status] ?? 'strong';
}

/** `dead (skipped, in doubt)` */
export function statusOf({ status, resolution, held, in_doubt }: Order): string {
  const more = [
    resolution,
    held ? 'blocked' : null,
    in_doubt && status !== 'sent' ? 'in doubt' : null,
  ].filter((each) => each !== null);
  return more.length === 0 ? status : `${status} (${more.join(', ')})`;
}

export const statusColumn: Column<Order> = { title: 'STATUS', text: statusOf, tone: toneOf, minWidth: 10 };
