-- Orders of one trace. Only orders with a trace have an entry, and its column never changes. A trace id is any text that a
-- producer sends: its beginning is indexed, which always fits.
CREATE INDEX idx_outbox_orders_trace_id ON outbox.outbox_orders (left(trace_id, 100)) WHERE trace_id IS NOT NULL;
