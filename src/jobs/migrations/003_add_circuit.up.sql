-- Whether the target of a queue is there, as the calls of all processes have shown it; NULL while they are answered.
ALTER TABLE jobs.queues ADD COLUMN circuit JSONB;
