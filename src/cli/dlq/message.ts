import type { Column, Tone } from '../output/render-table.ts';
import { idInput } from '../slice/item-id.ts';

/** The fields of a message that the commands read. */
export type Message = Readonly<{
  id: string;
  original_topic: string;
  error_message: string;
  retry_count: number;
  max_retries: number;
  payload: unknown;
  status: string;
  created_at: string;
  updated_at: string;
  last_retry_at: string | null;
  source_topic: string | null;
  source_partition: number | null;
  source_offset: number | null;
  key: string | null;
  key_base64?: string;
  error_class: string | null;
  consumer_group: string | null;
  original_partition: number | null;
  original_offset: number | null;
  original_timestamp: string | null;
  dialect: string | null;
  fingerprint: string | null;
  unroutable: boolean;
  attempt_no: number;
  parent_id: string | null;
  resolution: string | null;
  archived: boolean;
  next_attempt_at: string | null;
  retry_policy: string | null;
  version: number;
  error_stack?: string | null;
  masked?: true;
  removed_parts?: readonly string[];
  /** Only in lists. */
  payload_preview?: string | null;
}>;

export const messageId = idInput({ what: 'message', route: 'GET /api/v1/dlq/messages/ids' });

export const statuses = ['PENDING', 'RETRYING', 'RESOLVED', 'DEAD'] as const;

const tones: Readonly<Record<string, Tone>> = {
  PENDING: 'doubtful',
  RETRYING: 'strong',
  RESOLVED: 'good',
  DEAD: 'bad',
};

export function toneOf({ status }: Pick<Message, 'status'>): Tone {
  return tones[status] ?? 'strong';
}

export const statusColumn: Column<Message> = { title: 'STATUS', text: ({ status }) => status, tone: toneOf };

/** `orders.v1 (unroutable)` */
export function topicText({ original_topic, unroutable }: Message): string {
  return unroutable ? `${original_topic} (unroutable)` : original_topic;
}
