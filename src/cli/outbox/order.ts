import type { Tone } from '../output/printer.ts';

/** What the commands read of an order; the API's answer has more. */
export type Order = Readonly<{
  /** Beyond 2^53 it is an exact number, so it is only ever written, never computed with. */
  id: number;
  idempotency_key: string;
  destination: string;
  status: string;
  retry_count: number;
  next_attempt_at: string | null;
  last_error: string | null;
  ordering_key: string | null;
  ordering_seq: number | null;
  held: boolean;
  trace_id: string | null;
  first_sent_at: string | null;
  in_doubt: boolean;
  resolution: string | null;
  needs_person: boolean;
  supersedes_id: number | null;
  superseded_by_id: number | null;
  response: Readonly<{
    status: number | null;
    digest: string | null;
    broker_order_id: string | null;
  }> | null;
  request: unknown;
  request_digest: string;
  created_at: string;
  updated_at: string;
  archived: boolean;
}>;

/** One send, from its claim to its end. */
export type Attempt = Readonly<{
  no: number;
  started_at: string | null;
  ended_at: string | null;
  outcome: string;
  error: string | null;
  outside_id: string | null;
}>;

/** One of an order's transitions, as the audit has it. */
export type AuditEntry = Readonly<{
  at: string;
  status_from: string | null;
  status_to: string;
  retry_count: number;
  last_error: string | null;
  broker_order_id: string | null;
  actor: string;
  reason: string | null;
}>;

export const statuses = ['queued', 'sending', 'sent', 'failed', 'dead'] as const;

const tones: Readonly<Record<string, Tone>> = {
  queued: 'strong',
  sending: 'strong',
  sent: 'good',
  failed: 'doubtful',
  dead: 'bad',
};

export function toneOf(status: string): Tone {
  return tones[status] ?? 'strong';
}

/** `dead (skipped, in doubt)`: what a person should know stands beside the status. */
export function statusOf({ status, resolution, held, in_doubt }: Order): string {
  const more = [resolution, held ? 'held' : null, in_doubt && status !== 'sent' ? 'in doubt' : null].filter(
    (one) => one !== null,
  );
  return more.length === 0 ? status : `${status} (${more.join(', ')})`;
}
