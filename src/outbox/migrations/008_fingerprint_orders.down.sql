ALTER TABLE outbox.outbox_orders_archive DROP COLUMN IF EXISTS fingerprint;
ALTER TABLE outbox.outbox_orders DROP COLUMN IF EXISTS fingerprint;
