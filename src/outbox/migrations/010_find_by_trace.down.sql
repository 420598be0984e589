DROP INDEX outbox.idx_outbox_orders_trace_id;
