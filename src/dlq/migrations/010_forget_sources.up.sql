-- A source whose cluster or topic is gone for good can be forgotten: it is no longer listed, accounted or watched. Its
-- row stays, with who forgot it and why: should the partition turn up again, it is read on from its position, because
-- from its start everything would be taken a second time.
ALTER TABLE dlq.source_partitions ADD COLUMN forgotten JSONB;
