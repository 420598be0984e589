import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';

/** Dead letters with the same cause, as ingest would have stored them. */
export type Failures = Readonly<{
  count: number;
  /** Of the cause; the fingerprint is made from it. */
  name: string;
  topic?: string;
  group?: string | null;
  status?: 'PENDING' | 'DEAD' | 'RESOLVED';
  /** How many different keys they have. */
  keys?: number;
  errorClass?: string;
  template?: string;
  hoursAgo?: number;
}>;

/** Stores them with raw bytes; returns their fingerprint. */
export async function storeFailures(db: Database, failures: Failures): Promise<string> {
  const { count, name, topic = 'orders.v1', group = 'billing', status = 'PENDING', hoursAgo = 0 } = failures;
  const { keys = count, errorClass = 'com.acme.TimeoutException' } = failures;
  const { template = 'payment-gateway did not answer within <duration>' } = failures;
  const fingerprint = `v2:${Buffer.from(name).toString('hex').padEnd(32, '0').slice(0, 32)}`;
  await db.query(sql`
    INSERT INTO dlq.fingerprints (fingerprint, version, class, template, frame)
    VALUES (${fingerprint}, 2, ${errorClass}, ${template}, 'com.acme.PaymentClient.charge')
    ON CONFLICT DO NOTHING`);
  await db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, error_class, consumer_group, fingerprint, source_topic, message_key, raw_value,
       payload, status, retry_count, created_at)
    SELECT ${topic}, ${`${template} (${name})`}, ${errorClass}, ${group}, ${fingerprint}, ${`${topic}.dlq`},
           convert_to('customer-' || n % ${keys}, 'UTF8'), convert_to('{"order": ' || n || '}', 'UTF8'),
           jsonb_build_object('order', n), ${status}, CASE WHEN ${status} = 'DEAD' THEN 3 ELSE 0 END,
           clock_timestamp() - ${hoursAgo} * interval '1 hour' - interval '1 minute' + n * interval '1 millisecond'
    FROM generate_series(1, ${count}::int) AS n`);
  return fingerprint;
}
