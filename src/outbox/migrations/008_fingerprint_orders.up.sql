-- What failures with the same cause have in common: of `last_error`; NULL for older errors.
ALTER TABLE outbox.outbox_orders ADD COLUMN fingerprint TEXT;
ALTER TABLE outbox.outbox_orders_archive ADD COLUMN fingerprint TEXT;
-- Orders that go well are not in it.
CREATE INDEX idx_outbox_orders_fingerprint
    ON outbox.outbox_orders (fingerprint, id) WHERE fingerprint IS NOT NULL;
