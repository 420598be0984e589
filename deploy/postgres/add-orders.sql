-- A service that adds orders in its own transactions: outbox.add, or SELECT outbox.add_order(…).
--   psql -v role=my_service -f add-orders.sql redrive
GRANT USAGE ON SCHEMA outbox, platform TO :"role";
GRANT SELECT, INSERT ON outbox.idempo_ledger TO :"role";
GRANT INSERT ON outbox.outbox_orders, outbox.outbox_audit TO :"role";
GRANT SELECT (id, idempotency_key) ON outbox.outbox_orders TO :"role";
GRANT USAGE ON SEQUENCE outbox.outbox_orders_id_seq, outbox.ordering_seqs TO :"role";
GRANT SELECT ON platform.idle_workers TO :"role";
