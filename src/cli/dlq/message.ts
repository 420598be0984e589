import type { Tone } from '../output/printer.ts';

/** What the commands read of a message; the API's answer has more. */
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
  error_stack?: string | null;
}>;

export const statuses = ['PENDING', 'RETRYING', 'RESOLVED', 'DEAD'] as const;

const tones: Readonly<Record<string, Tone>> = {
  PENDING: 'doubtful',
  RETRYING: 'strong',
  RESOLVED: 'good',
  DEAD: 'bad',
};

export function toneOf(status: string): Tone {
  return tones[status] ?? 'strong';
}
